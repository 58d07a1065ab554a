/** Conditions of a query, joined with AND, and the values of their parameters. Each condition names its parameter as `$`. */
export interface Conditions {
  /** Adds a condition, unless the value is undefined. */
  and(sql: string, value: unknown): Conditions
  readonly where: string
  readonly values: readonly unknown[]
}

export function createConditions(parts: readonly (readonly [sql: string, value: unknown])[] = []): Conditions {
  return {
    and: (sql, value) => (value === undefined ? createConditions(parts) : createConditions([...parts, [sql, value]])),
    where: parts.length === 0 ? 'true' : parts.map(([sql], index) => sql.replace('$', () => `$${index + 1}`)).join(' AND '),
    values: parts.map(([, value]) => value),
  }
}
