import { DatabaseError } from 'pg'

/** What somebody has undone by hand, to be done again. */
export type Redo = 'roles' | 'tables'

/** invalid_authorization, invalid_catalog_name, insufficient_privilege */
const OF_ROLES = /^(28...|3D000|42501)$/
/** invalid_schema_name, undefined_table, undefined_function, undefined_column */
const OF_TABLES = /^(3F000|42P01|42883|42703)$/

/**
 * What an error of the journal says is not as it was made: a login, a database or a right; the schema. Undefined for all that passes by
 * itself, like a lock that was not had in time. Pure.
 */
export function redoAfter(error: unknown): Redo | undefined {
  const states = sqlStates(error)
  if (states.some((state) => OF_ROLES.test(state))) return 'roles'
  return states.some((state) => OF_TABLES.test(state)) ? 'tables' : undefined
}

/** Of an error, of what caused it, and of all that it is made of (PostgreSQL, appendix A). */
function sqlStates(error: unknown): readonly string[] {
  if (error instanceof AggregateError) return error.errors.flatMap(sqlStates)
  if (error instanceof DatabaseError) return error.code === undefined ? [] : [error.code]
  return error instanceof Error && error.cause !== undefined ? sqlStates(error.cause) : []
}
