import type { SQLInputValue } from 'node:sqlite'

/** Conditions of a query, joined with AND, and the values of their parameters. */
export interface Conditions {
  /** Adds a condition, unless the value is undefined. */
  and(sql: string, value: SQLInputValue | undefined): Conditions
  readonly where: string
  readonly values: readonly SQLInputValue[]
}

export function createConditions(parts: readonly (readonly [sql: string, value: SQLInputValue])[] = []): Conditions {
  return {
    and: (sql, value) => (value === undefined ? createConditions(parts) : createConditions([...parts, [sql, value]])),
    where: parts.length === 0 ? 'true' : parts.map(([sql]) => sql).join(' AND '),
    values: parts.map(([, value]) => value),
  }
}
