import type { Suspension, SuspensionCause } from '../engine.ts'
import { kindOf } from './catalog.ts'
import type { Connection } from './connection.ts'
import { END_WITHIN_MS, tryEndSessions } from './sessions/ended-sessions.ts'

/**
 * Ends the sessions of these roles and expires their passwords, so that a tenant cannot continue in a new session. The next sweep finds the
 * expired password and restores it (password.ts). Returns the suspended tenants.
 */
export async function suspend(
  connection: Pick<Connection, 'tenants' | 'ended'>,
  roles: readonly number[],
  cause: SuspensionCause,
): Promise<readonly Suspension[]> {
  if (roles.length === 0) return []
  const names = await expirePasswords(connection, 'oid = ANY ($1)', roles)
  for (const name of names) await tryEndSessions(connection, name, END_WITHIN_MS.required)
  return suspensionsOf(names, cause)
}

/** Returns the suspensions of tenants among these roles. The login of a discarded database is closed already. */
export function suspensionsOf(roles: readonly string[], cause: SuspensionCause): readonly Suspension[] {
  return roles.filter((name) => kindOf(name) === 'tenant').map((name) => ({ name, cause }))
}

/** Expires the passwords of the roles that meet a condition on $1. Returns their names. */
export async function expirePasswords(
  { tenants }: Pick<Connection, 'tenants'>,
  condition: string,
  values: readonly unknown[],
): Promise<readonly string[]> {
  const expired = await tenants.query<{ name: string }>(
    `UPDATE pg_authid SET rolvaliduntil = '-infinity' WHERE ${condition} AND NOT rolsuper RETURNING rolname AS name`,
    [values],
  )
  return expired.map(({ name }) => name)
}
