import type { Enforced, SessionBounds } from '../engine.ts'
import type { Connection, Session } from './connection.ts'
import { guardSharedCatalogs, suspend } from './shared-catalogs.ts'

/** Bounds on what all tenants of a server share. */
interface ServerBounds {
  /**
   * Transaction ids that may be used up while one transaction holds on to its snapshot or its own id. Nothing older can be frozen
   * meanwhile, and the server stops at 2,147 million. Tenants were measured to use up 190,000 a second.
   */
  readonly snapshotAge: number
  /** Size of the catalogs that belong to no database; a server of 50 tenants has 1 MiB of them. */
  readonly sharedCatalogBytes: number
}

const SERVER_BOUNDS: ServerBounds = { snapshotAge: 20_000_000, sharedCatalogBytes: 64 * 1_048_576 }
/** Part of the notification queue, which is 8 GB for the whole server, past which open transactions that hold it up are ended. */
const QUEUE_USED = 0.02
/** An open transaction younger than this, in seconds, does not hold up the notification queue. */
const QUEUE_PATIENCE_S = 10

/**
 * Tenants' sessions that are past a bound, each cancelled or ended as it is read. $1: ms of a statement, $2: ms of an idle transaction,
 * $3: sessions that were warned before, $4: age of a snapshot in transaction ids.
 */
const ENFORCE = `
  SELECT session, cancels, CASE WHEN cancels THEN pg_cancel_backend(pid) ELSE pg_terminate_backend(pid) END FROM (
    SELECT pid, session, overdue AND NOT idle AND NOT aged AND NOT clogs AND NOT session = ANY ($3) AS cancels FROM (
      SELECT pid, pid || '@' || extract(epoch FROM backend_start) AS session,
        state IN ('active', 'fastpath function call')
          AND clock_timestamp() - query_start > $1 * interval '1 millisecond' AS overdue,
        state LIKE 'idle in transaction%' AND clock_timestamp() - state_change > $2 * interval '1 millisecond' AS idle,
        greatest(age(backend_xid), age(backend_xmin)) > $4 IS TRUE AS aged,
        pg_notification_queue_usage() > ${QUEUE_USED}
          AND clock_timestamp() - xact_start > ${QUEUE_PATIENCE_S} * interval '1 second' IS TRUE AS clogs
      FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
      WHERE a.backend_type = 'client backend' AND NOT r.rolsuper) sessions
    WHERE overdue OR idle OR aged OR clogs) past`

/**
 * Temporary files by session. Their names begin with the pid of the session, or of the parallel worker, that made them; those of a parallel
 * query are in a directory with such a name (PostgreSQL, fd.c and sharedfileset.c).
 */
const SPILLED = `
  WITH files AS (
    SELECT name, size FROM pg_ls_tmpdir()
    UNION ALL
    SELECT directory, (pg_stat_file('base/pgsql_tmp/' || directory || '/' || name, true)).size
    FROM pg_ls_dir('base/pgsql_tmp', true, false) directory, pg_ls_dir('base/pgsql_tmp/' || directory, true, false) name
    WHERE directory LIKE '%fileset')
  SELECT coalesce(leader_pid, pid) AS pid, datname, sum(size) AS bytes
  FROM files JOIN pg_stat_activity ON pid = substring(name FROM '^pgsql_tmp(\\d+)')::int
  WHERE usename <> current_user GROUP BY 1, 2`

/** Ends the sessions of tenants whose temporary files and database together take more than $1 bytes. */
const END_SPILLING = `
  WITH spilled AS (${SPILLED}),
    excessive AS (SELECT datname FROM spilled GROUP BY 1 HAVING sum(bytes) + pg_database_size(datname) > $1)
  SELECT pg_terminate_backend(pid) FROM spilled JOIN excessive USING (datname)`

interface Row {
  /** Tells a session from a later one with the same pid. */
  readonly session: string
  readonly cancels: boolean
}

export type Enforce = (bounds: SessionBounds) => Promise<Enforced>

/**
 * Keeps tenants' sessions to their bounds. A statement past its time is cancelled; a session that was warned so is ended the second time,
 * for a statement may catch its cancellation and go on. Sessions past another bound are ended at once.
 */
export function createWatchdog(connection: Connection, bounds: Partial<ServerBounds> = {}): Enforce {
  const { snapshotAge, sharedCatalogBytes } = { ...SERVER_BOUNDS, ...bounds }
  const { watch: session, lockTable } = connection
  let warned: readonly string[] = []

  return async function enforce({ statementMs, idleTransactionMs, sizeBytes }) {
    // First: with the lock table full, no other statement works.
    const hoarding = await lockTable.endHoarder()
    await suspend(connection, lockTable.takeHoarders())
    const past = await session.query<Row>(ENFORCE, [statementMs, idleTransactionMs, warned, snapshotAge])
    const spilling = await session.query(END_SPILLING, [sizeBytes])
    const writing = await guardSharedCatalogs(connection, sharedCatalogBytes)
    const cancelled = past.filter(({ cancels }) => cancels)
    warned = cancelled.map((row) => row.session)
    return { cancelled: cancelled.length, ended: past.length - cancelled.length + spilling.length + hoarding + writing }
  }
}

/** Part of all transaction ids past which sessions that keep a database from being frozen are ended; autovacuum begins at a tenth. */
const NEAR = 0.25
/** Age of a session, in seconds, from which it counts as one that stays. */
const STAYS_S = 60
/** Both kinds of ids wrap around after 2^31 (PostgreSQL documentation, "Preventing Transaction ID Wraparound Failures"). */
const USED = 'greatest(age(datfrozenxid), mxid_age(datminmxid)) / 2147483648.0'

/**
 * Part of the transaction ids or multixact ids that are used up, 0 to 1, by the database that is worst off. Past a quarter it ends the
 * sessions in such databases: one that stays for days keeps its temporary tables from being frozen, or holds a lock that vacuum needs.
 */
export async function guardTransactionIds(session: Session, { near = NEAR, staysS = STAYS_S } = {}): Promise<number> {
  const [row] = await session.query<{ used: number }>(`SELECT max(${USED})::float8 AS used FROM pg_database`)
  const used = row?.used ?? 0
  if (used > near) {
    await session.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity JOIN pg_database d ON d.oid = datid
       WHERE ${USED} > $1 AND backend_type = 'client backend' AND usename <> current_user
         AND clock_timestamp() - backend_start > $2 * interval '1 second'`,
      [near, staysS],
    )
  }
  return used
}
