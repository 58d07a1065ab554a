import type { Suspension, SuspensionCause } from '../engine.ts'
import { kindOf } from './catalog.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import type { Connection } from './connection.ts'
import { END_WITHIN_MS, tryEndSessions } from './sessions/ended-sessions.ts'

/**
 * Ends the sessions of these roles and expires their passwords, so that a tenant cannot continue in a new session. The next sweep finds the
 * expired password and restores it (password.ts). A tenant may lock its own role in a transaction that nothing ends: then only its other
 * sessions end, at each check, until the server is restarted. Returns the suspended tenants.
 */
export async function suspend(
  connection: Pick<Connection, 'tenants' | 'ended'>,
  roles: readonly number[],
  cause: SuspensionCause,
): Promise<readonly Suspension[]> {
  const suspended: string[] = []
  for (const role of roles) suspended.push(...(await suspendRole(connection, role)))
  return suspensionsOf(suspended, cause)
}

/** Returns the name of the role; nothing when its password could not be expired. */
async function suspendRole(connection: Pick<Connection, 'tenants' | 'ended'>, role: number): Promise<readonly string[]> {
  const expired = await expirePassword(connection, 'oid = $1', role)
  const [found] = await connection.tenants.query<{ name: string }>(
    'SELECT rolname AS name FROM pg_roles WHERE oid = $1 AND NOT rolsuper',
    [role],
  )
  if (found) await tryEndSessions(connection, found.name, END_WITHIN_MS.attempted)
  return expired
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

/** Expires the password of the role that meets a condition on $1. Returns its name; nothing when its tenant keeps it locked. */
export async function expirePassword(
  { tenants }: Pick<Connection, 'tenants'>,
  condition: string,
  role: number | string,
): Promise<readonly string[]> {
  const expired = await ignoringLocks(
    tenants.query<{ name: string }>(
      `UPDATE pg_authid SET rolvaliduntil = '-infinity' WHERE ${condition} AND NOT rolsuper RETURNING rolname AS name`,
      [role],
    ),
  )
  return expired.map(({ name }) => name)
}
