import type { Connection } from './connection.ts'
import { END_WITHIN_MS, tryEndSessions } from './sessions/ended-sessions.ts'

/**
 * Ends the sessions of these roles and expires their passwords, so that a tenant cannot continue in a new session. The next sweep finds the
 * expired password and restores it (password.ts).
 */
export async function suspend(connection: Pick<Connection, 'tenants' | 'ended'>, roles: readonly number[]): Promise<void> {
  if (roles.length === 0) return
  for (const name of await expirePasswords(connection, 'oid = ANY ($1)', roles))
    await tryEndSessions(connection, name, END_WITHIN_MS.required)
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
