import type { Suspension, SuspensionCause } from '../engine.ts'
import { kindOf } from './catalog.ts'
import { closeLogin, Mark, markOfName } from './closing.ts'
import { type Connection, quoteText } from './connection.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import { END_WITHIN_MS, tryEndSessions } from './sessions/ended-sessions.ts'

/**
 * Ends the sessions of these roles and rejects their logins, so that a tenant cannot continue in a new session. The next sweep finds the
 * suspension and ends it (password.ts). Returns the suspended tenants.
 */
export async function suspend(
  connection: Pick<Connection, 'tenants' | 'ended'>,
  roles: readonly number[],
  cause: SuspensionCause,
): Promise<readonly Suspension[]> {
  if (roles.length === 0) return []
  const found = await connection.tenants.query<{ name: string }>(
    'SELECT rolname AS name FROM pg_roles WHERE oid = ANY ($1) AND NOT rolsuper',
    [roles],
  )
  for (const { name } of found) {
    await rejectLogins(connection, name)
    await tryEndSessions(connection, name, END_WITHIN_MS.attempted)
  }
  return suspensionsOf(
    found.map(({ name }) => name),
    cause,
  )
}

/** Returns the rows of a statement; none when a tenant holds a lock that it needs, in a session that nothing ends. */
export async function ignoringLocks<Row>(statement: Promise<readonly Row[]>): Promise<readonly Row[]> {
  try {
    return await statement
  } catch (error) {
    if (sqlStateOf(error) !== SqlState.lockNotAvailable) throw error
    return []
  }
}

/** Returns the suspensions of tenants among these roles. The login of a discarded database is closed already. */
export function suspensionsOf(roles: readonly string[], cause: SuspensionCause): readonly Suspension[] {
  return roles.filter((name) => kindOf(name) === 'tenant').map((name) => ({ name, cause }))
}

/** Expires the password of a role, or marks its database when the tenant keeps the role locked. Does nothing for a role that is closed so. */
export async function rejectLogins(connection: Pick<Connection, 'tenants'>, name: string): Promise<void> {
  const isOpen = `NOT rolsuper AND rolvaliduntil IS DISTINCT FROM '-infinity' AND ${markOfName('rolname')} IS NULL`
  const statements = `UPDATE pg_authid SET rolvaliduntil = '-infinity' WHERE rolname = ${quoteText(name)} AND ${isOpen}`
  await closeLogin(connection, name, { statements, mark: Mark.suspended })
}
