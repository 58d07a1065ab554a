import { setTimeout as delay } from 'node:timers/promises'
import type { Connection } from './connection.ts'
import { endSessions } from './sessions.ts'

/** Maximum size of one role's settings, in bytes; larger than any client needs. */
const SETTING_BYTES = 16_384
const CHECKS = 5
const CHECK_INTERVAL_MS = 200

const SIZE = `SELECT sum(pg_total_relation_size(oid))::float8 AS bytes FROM pg_class WHERE relisshared AND relkind = 'r'`

/** Query of tenants' roles that write to a shared catalog in an open transaction, and of the version of each role's settings. */
const WRITES = `
  SELECT a.usesysid AS role, NULL AS version
  FROM pg_locks l JOIN pg_class c ON c.oid = l.relation AND c.relisshared JOIN pg_stat_activity a USING (pid)
  WHERE l.database = 0 AND l.mode = 'RowExclusiveLock' AND a.usename <> current_user
  UNION
  SELECT setrole, setdatabase || '@' || ctid || '@' || xmin FROM pg_db_role_setting WHERE setrole <> 0`

interface Write {
  readonly role: number
  /** Version of the role's settings, which only the tenant writes; null for an open transaction. */
  readonly version: string | null
}

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

/** Returns the tenants' roles that write to shared catalogs. Checks several times, because such a transaction may take only milliseconds. */
async function findWriters({ watch }: Connection): Promise<readonly number[]> {
  const writers = new Set<number>()
  const first = new Set((await watch.query<Write>(WRITES)).map(({ version }) => version))
  for (let check = 0; check < CHECKS; check++) {
    for (const { role, version } of await watch.query<Write>(WRITES)) {
      if (version === null || !first.has(version)) writers.add(role)
    }
    await delay(CHECK_INTERVAL_MS)
  }
  return [...writers]
}

/**
 * Bounds the size of the catalogs that all databases share. They count towards no tenant's size, yet a role's settings (ALTER ROLE … SET)
 * may have any length, and each change leaves a dead row version. When the catalogs exceed `bytes`, suspends the tenants that write to
 * them, removes overlong settings and vacuums. Returns the number of suspended tenants.
 */
export async function guardSharedCatalogs(connection: Connection, bytes: number): Promise<number> {
  const [size] = await connection.watch.query<{ bytes: number }>(SIZE)
  if ((size?.bytes ?? 0) < bytes) return 0
  const writers = await findWriters(connection)
  await suspend(connection, writers)
  const { tenants, drops } = connection
  await tenants.query(`DELETE FROM pg_db_role_setting WHERE setrole <> 0 AND pg_column_size(setconfig) > ${SETTING_BYTES}`)
  await drops.query('VACUUM pg_db_role_setting')
  await drops.query('VACUUM pg_authid, pg_auth_members, pg_shdepend')
  return writers.length
}
