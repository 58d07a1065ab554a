/** Conditions of a query that all must hold, with the values for their parameters: each names one as `$`. */
export interface Conditions {
  /** Adds one; none when there is no value. */
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
