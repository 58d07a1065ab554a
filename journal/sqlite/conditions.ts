import type { SQLInputValue } from 'node:sqlite'

/** Conditions of a query that all must hold, with the values for their parameters. */
export interface Conditions {
  /** Adds one; none when there is no value. */
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
