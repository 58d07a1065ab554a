import type { Connection } from './connection.ts'
import { endSessions } from './drop.ts'

/**
 * Ends the sessions of these roles and expires their passwords, so that a tenant cannot continue in a new session. The next sweep finds the
 * expired password and restores it (password.ts).
 */
export async function suspend({ tenants }: Pick<Connection, 'tenants'>, roles: readonly number[]): Promise<void> {
  if (roles.length === 0) return
  const suspended = await tenants.query<{ name: string }>(
    `UPDATE pg_authid SET rolvaliduntil = '-infinity' WHERE oid = ANY ($1) AND NOT rolsuper RETURNING rolname AS name`,
    [roles],
  )
  for (const { name } of suspended) await endSessions(tenants, name)
}
