import { DatabaseError } from 'pg'

/** Part of the journal that was changed by hand and needs another preparation. */
export type Repair = 'roles' | 'tables'

/** SQL states invalid_authorization, invalid_catalog_name and insufficient_privilege. */
const OF_ROLES = /^(28...|3D000|42501)$/
/** SQL states invalid_schema_name, undefined_table, undefined_function and undefined_column. */
const OF_TABLES = /^(3F000|42P01|42883|42703)$/

/**
 * Returns the part of the journal that an error shows to be missing or changed: roles (a login, a database or a privilege) or tables (the
 * schema). Undefined for temporary errors, such as a lock timeout. Pure.
 */
export function repairAfter(error: unknown): Repair | undefined {
  const states = sqlStates(error)
  if (states.some((state) => OF_ROLES.test(state))) return 'roles'
  return states.some((state) => OF_TABLES.test(state)) ? 'tables' : undefined
}

/** SQL states of an error, of its causes, and of the errors that it aggregates (PostgreSQL, appendix A). */
function sqlStates(error: unknown): readonly string[] {
  if (error instanceof AggregateError) return error.errors.flatMap(sqlStates)
  if (error instanceof DatabaseError) return error.code === undefined ? [] : [error.code]
  return error instanceof Error && error.cause !== undefined ? sqlStates(error.cause) : []
}
