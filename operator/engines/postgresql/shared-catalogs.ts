import { setTimeout as delay } from 'node:timers/promises'
import type { Connection } from './connection.ts'
import { endSessions } from './sessions.ts'

/** Size of one role's settings that no client needs. */
const SETTING_BYTES = 16_384
const LOOKS = 5
const EVERY_MS = 200

const SIZE = `SELECT sum(pg_total_relation_size(oid))::float8 AS bytes FROM pg_class WHERE relisshared AND relkind = 'r'`

/** Tenants' roles that write to a shared catalog in an open transaction, and the version of each role's settings: only tenants write these. */
const LOOK = `
  SELECT a.usesysid AS role, NULL AS version
  FROM pg_locks l JOIN pg_class c ON c.oid = l.relation AND c.relisshared JOIN pg_stat_activity a USING (pid)
  WHERE l.database = 0 AND l.mode = 'RowExclusiveLock' AND a.usename <> current_user
  UNION
  SELECT setrole, setdatabase || '@' || ctid || '@' || xmin FROM pg_db_role_setting WHERE setrole <> 0`

interface Write {
  readonly role: number
  /** Of the role's settings; null for an open transaction. */
  readonly version: string | null
}

/**
 * Ends the sessions of these roles and lets their passwords expire: otherwise a tenant would go on in its next session. The next sweep finds
 * the password expired and puts it back (password.ts).
 */
export async function suspend({ tenants }: Pick<Connection, 'tenants'>, roles: readonly number[]): Promise<void> {
  if (roles.length === 0) return
  const suspended = await tenants.query<{ name: string }>(
    `UPDATE pg_authid SET rolvaliduntil = '-infinity' WHERE oid = ANY ($1) AND NOT rolsuper RETURNING rolname AS name`,
    [roles],
  )
  for (const { name } of suspended) await endSessions(tenants, name)
}

/** Looks several times: a transaction that only changes a catalog is over within milliseconds. */
async function findWriters({ watch }: Connection): Promise<readonly number[]> {
  const writers = new Set<number>()
  const first = new Set((await watch.query<Write>(LOOK)).map(({ version }) => version))
  for (let look = 0; look < LOOKS; look++) {
    for (const { role, version } of await watch.query<Write>(LOOK)) {
      if (version === null || !first.has(version)) writers.add(role)
    }
    await delay(EVERY_MS)
  }
  return [...writers]
}

/**
 * Bounds the catalogs that belong to no database, and so to no tenant's size: a role's own settings (ALTER ROLE … SET) may be of any length,
 * and each change leaves the former version behind. Suspends the tenants that write while the catalogs are larger than `bytes`, removes
 * settings that are too long, and vacuums. Returns how many tenants were suspended.
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
