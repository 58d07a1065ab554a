import { setTimeout as delay } from 'node:timers/promises'
import { type Suspension, SuspensionCause } from '../engine.ts'
import type { Connection } from './connection.ts'
import { ignoringLocks, suspend } from './suspension.ts'

/** Maximum sizes of the catalogs that all databases share, in bytes with indexes. */
export interface CatalogBounds {
  /** Maximum size of all together; 1 MiB is usual for 50 tenants. */
  readonly totalBytes: number
  /**
   * Maximum size of each one that has a few rows for a tenant, however large its database is: {@link SMALL}. Logins and the administrator's statements read
   * some of them from end to end.
   */
  readonly smallBytes: number
}

const MIB = 1_048_576
const BOUNDS: CatalogBounds = { totalBytes: 64 * MIB, smallBytes: MIB / 2 }

/** Catalogs with a few rows for each tenant. */
const SMALL = [
  'pg_database',
  'pg_authid',
  'pg_auth_members',
  'pg_tablespace',
  'pg_parameter_acl',
  'pg_shdescription',
  'pg_shseclabel',
]
/** Catalog with a row for each object of each database. The size limits of databases bound it, so that it is vacuumed only. */
const OBJECTS = 'pg_shdepend'
const OBJECTS_GROWTH = 2

/** Maximum size of one role's settings, in bytes; larger than any client needs. */
const SETTING_BYTES = 16_384
const CHECKS = 5
const CHECK_INTERVAL_MS = 200
/** Number of changes between successive checks that show a loop. The administrator changes a row once or twice in the same time. */
const LOOP = 3

const SIZES = `
  SELECT relname AS name, pg_total_relation_size(oid)::float8 AS bytes FROM pg_class WHERE relisshared AND relkind = 'r'`

/**
 * Query of tenants' roles that write to the shared catalogs $1 in an open transaction, and of the versions of the rows that a tenant can
 * write there. Its own settings are written by the tenant alone, its other rows by the administrator, too.
 */
const WRITES = `
  SELECT a.usesysid AS role, NULL AS version, false AS shared
  FROM pg_locks l JOIN pg_class c ON c.oid = l.relation AND c.relisshared JOIN pg_stat_activity a USING (pid)
  WHERE l.database = 0 AND l.mode = 'RowExclusiveLock' AND a.usename <> current_user AND relname = ANY ($1)
  UNION
  SELECT a.usesysid, NULL, false FROM pg_database d JOIN pg_stat_activity a ON a.backend_xid = d.xmax
  WHERE a.usename <> current_user AND 'pg_database' = ANY ($1)
  UNION
  SELECT setrole, setdatabase || '@' || ctid || '@' || xmin, false FROM pg_db_role_setting
  WHERE setrole <> 0 AND 'pg_db_role_setting' = ANY ($1)
  UNION
  SELECT oid, 'role@' || ctid || '@' || xmin, true FROM pg_authid WHERE NOT rolsuper AND 'pg_authid' = ANY ($1)
  UNION
  SELECT r.oid, 'database@' || d.ctid || '@' || d.xmin, true FROM pg_database d JOIN pg_authid r ON rolname = datname
  WHERE 'pg_database' = ANY ($1)
  UNION
  SELECT roleid, 'member@' || member || '@' || ctid || '@' || xmin, true FROM pg_auth_members WHERE 'pg_auth_members' = ANY ($1)`

interface Write {
  readonly role: number
  /** Version of a row; null for an open transaction. */
  readonly version: string | null
  /** Whether the administrator also writes such rows. */
  readonly shared: boolean
}

/** Returns the tenants' roles that write to these shared catalogs. Checks several times, because such a transaction may take only milliseconds. */
async function findWriters({ watch }: Connection, catalogs: readonly string[]): Promise<readonly number[]> {
  const writers = new Set<number>()
  /** Number of checks that found changes, by role. */
  const changes = new Map<number, number>()
  let known: ReadonlySet<string | null> | undefined
  for (let check = 0; check <= CHECKS; check++) {
    if (check > 0) await delay(CHECK_INTERVAL_MS)
    const writes = await watch.query<Write>(WRITES, [catalogs])
    const before = known
    const changed = before === undefined ? [] : writes.filter(({ version }) => version !== null && !before.has(version))
    const certain = [...writes.filter(({ version }) => version === null), ...changed.filter(({ shared }) => !shared)]
    for (const { role } of certain) writers.add(role)
    for (const role of new Set(changed.map((write) => write.role))) changes.set(role, (changes.get(role) ?? 0) + 1)
    known = new Set(writes.map(({ version }) => version))
  }
  for (const [role, count] of changes) if (count >= LOOP) writers.add(role)
  return [...writers]
}

/**
 * Creates the guard of the catalogs that all databases share. They count towards no tenant's size, yet a role's settings (ALTER ROLE … SET)
 * may have any length, and each GRANT of the own database or change of the own password leaves a dead row version. The guard suspends the
 * tenants that go on writing while a catalog above its bound grows, removes overlong settings and vacuums. It returns the suspended
 * tenants. Vacuum frees space within a catalog, whose file may keep its size: only growth beyond that size matters.
 */
export function createCatalogGuard(
  connection: Connection,
  bounds: Partial<CatalogBounds> = {},
): () => Promise<readonly Suspension[]> {
  const { totalBytes, smallBytes } = { ...BOUNDS, ...bounds }
  /** Sizes of catalogs after their last vacuum. */
  const vacuumed = new Map<string, number>()

  async function sizes(): Promise<ReadonlyMap<string, number>> {
    const rows = await connection.watch.query<{ name: string; bytes: number }>(SIZES)
    return new Map(rows.map(({ name, bytes }) => [name, bytes]))
  }

  /** Returns the catalogs above their bounds that have grown since their last vacuum. */
  function large(found: ReadonlyMap<string, number>): readonly string[] {
    const total = [...found].reduce((sum, [name, bytes]) => (name === OBJECTS ? sum : sum + bytes), 0)
    const isLarge = (name: string, bytes: number): boolean => {
      const before = vacuumed.get(name) ?? 0
      if (name === OBJECTS) return bytes >= totalBytes && bytes >= OBJECTS_GROWTH * before
      return bytes > before && (total >= totalBytes || (SMALL.includes(name) && bytes >= smallBytes))
    }
    return [...found].filter(([name, bytes]) => isLarge(name, bytes)).map(([name]) => name)
  }

  return async function guard() {
    const names = large(await sizes())
    if (names.length === 0) return []
    const writers = await findWriters(
      connection,
      names.filter((name) => name !== OBJECTS),
    )
    const suspended = await suspend(connection, writers, SuspensionCause.catalogs)
    const { tenants, drops } = connection
    await ignoringLocks(
      tenants.query(`DELETE FROM pg_db_role_setting WHERE setrole <> 0 AND pg_column_size(setconfig) > ${SETTING_BYTES}`),
    )
    for (const name of names) await drops.query(`VACUUM ${name}`)
    const left = await sizes()
    for (const name of names) vacuumed.set(name, left.get(name) ?? 0)
    return suspended
  }
}
