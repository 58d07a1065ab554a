import { type Enforced, type SessionBounds, type Suspension, SuspensionCause } from '../engine.ts'
import type { Connection, Session } from './connection.ts'
import { createQueueGuard, type QueueBounds } from './notification-queue.ts'
import { SESSION_ID } from './sessions/ended-sessions.ts'
import { type CatalogBounds, createCatalogGuard } from './shared-catalogs.ts'
import { rejectLogins, suspend, suspensionsOf } from './suspension.ts'

/** Bounds on resources that all tenants of a server share, and on statements that nothing ends. */
interface ServerBounds extends Partial<CatalogBounds>, Partial<QueueBounds> {
  /**
   * Maximum age of an open transaction's snapshot or id, in transaction ids. Newer rows cannot be frozen meanwhile, and the server stops at
   * an age of 2,147 million. Tenants can use up 190,000 ids per second (measured).
   */
  readonly snapshotAge: number
  /** Time in ms after which a session that was told to end, and goes on, counts as one that nothing ends. */
  readonly survivalMs: number
  /** Time in ms for which such a session may keep work for others from being done. */
  readonly stallMs: number
  /** Time in ms for which such a session may keep its own database from being removed: that harms others only by its space and processor. */
  readonly ownStallMs: number
}

const SERVER_BOUNDS = { snapshotAge: 20_000_000, survivalMs: 15_000, stallMs: 20_000, ownStallMs: 3_600_000 }

/**
 * Query that cancels or ends, and returns, tenants' sessions past a bound. $1: maximum ms of a statement, $2: maximum ms of an idle
 * transaction, $3: sessions whose statement was cancelled before, $4: maximum age of a snapshot in transaction ids.
 */
const ENFORCE = `
  SELECT session, cancels, CASE WHEN cancels THEN pg_cancel_backend(pid) ELSE pg_terminate_backend(pid) END FROM (
    SELECT pid, session, overdue AND NOT idle AND NOT aged AND NOT session = ANY ($3) AS cancels FROM (
      SELECT pid, ${SESSION_ID} AS session,
        state IN ('active', 'fastpath function call')
          AND clock_timestamp() - query_start > $1 * interval '1 millisecond' AS overdue,
        state LIKE 'idle in transaction%' AND clock_timestamp() - state_change > $2 * interval '1 millisecond' AS idle,
        greatest(age(backend_xid), age(backend_xmin)) > $4 IS TRUE AS aged
      FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
      WHERE a.backend_type = 'client backend' AND NOT r.rolsuper) sessions
    WHERE overdue OR idle OR aged) past`

/**
 * Query of the temporary files by session. The name of a file, or of the directory of a parallel query's files, begins with the pid of the
 * session or parallel worker that created it (PostgreSQL, fd.c and sharedfileset.c).
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

/** Statement that ends the sessions of tenants whose temporary files and database together take more than $1 bytes. */
const END_SPILLING = `
  WITH spilled AS (${SPILLED}),
    excessive AS (SELECT datname FROM spilled GROUP BY 1 HAVING sum(bytes) + pg_database_size(datname) > $1)
  SELECT pg_terminate_backend(pid) FROM spilled JOIN excessive USING (datname)`

interface Row {
  /** Identifier of the session: pid and start time, because pids are reused. */
  readonly session: string
  readonly cancels: boolean
}

type Enforce = (bounds: SessionBounds) => Promise<Enforced>

/**
 * Creates the watchdog, which enforces the bounds of tenants' sessions. It cancels a statement past its bound the first time and ends the
 * session the second time, because a statement may catch its cancellation. It ends sessions past any other bound at once.
 */
export function createWatchdog(connection: Connection, bounds: Partial<ServerBounds> = {}): Enforce {
  const { snapshotAge, survivalMs, stallMs, ownStallMs } = { ...SERVER_BOUNDS, ...bounds }
  const { watch: session, lockTable, ended, stalls } = connection
  const guardCatalogs = createCatalogGuard(connection, bounds)
  const guardQueue = createQueueGuard(connection, bounds)
  let cancelledBefore: readonly string[] = []

  /** Suspends the tenants of sessions that nothing ends. A loop without checks for interrupts heeds no request to end. */
  async function suspendStuck(): Promise<{ readonly suspended: readonly Suspension[]; readonly needsRestart: boolean }> {
    const survivors = await ended.findSurvivors(session, survivalMs)
    if (survivors.length === 0) return { suspended: [], needsRestart: false }
    const roles = [...new Set(survivors.map(({ role }) => role))]
    for (const role of roles) await rejectLogins(connection, role)
    const needsRestart = stalls.lastedMs('others') > stallMs || stalls.lastedMs('own') > ownStallMs
    return { suspended: suspensionsOf(roles, SuspensionCause.statement), needsRestart }
  }

  return async function enforce({ statementMs, idleTransactionMs, sizeBytes }) {
    // First, because no other statement works while the lock table is full.
    const holding = await lockTable.endLargestHolder()
    const past = await session.query<Row>(ENFORCE, [statementMs, idleTransactionMs, cancelledBefore, snapshotAge])
    const spilling = await session.query(END_SPILLING, [sizeBytes])
    const locking = await suspend(connection, lockTable.takeEndedRoles(), SuspensionCause.locks)
    const queue = await guardQueue()
    const growing = await guardCatalogs()
    const cancelled = past.filter(({ cancels }) => cancels)
    const told = past.filter(({ cancels }) => !cancels).map((row) => row.session)
    cancelledBefore = [...cancelled.map((row) => row.session), ...told]
    ended.record(told)
    const filling = queue.ended + queue.suspended.length + growing.length
    const counts = { cancelled: cancelled.length, ended: told.length + spilling.length + holding + filling }
    const stuck = await suspendStuck()
    const suspended = [...locking, ...queue.suspended, ...growing, ...stuck.suspended]
    return { ...counts, ...(suspended.length > 0 && { suspended }), ...(stuck.needsRestart && { needsRestart: true }) }
  }
}

/** Used share of transaction ids above which sessions in the affected databases are ended; autovacuum begins at a tenth. */
const MAX_USED = 0.25
/** Minimum age in seconds of a session that is ended so. */
const MIN_AGE_S = 60
/** SQL for the used share of ids. Both kinds wrap around after 2^31 (PostgreSQL documentation, "Preventing Transaction ID Wraparound Failures"). */
const USED = 'greatest(age(datfrozenxid), mxid_age(datminmxid)) / 2147483648.0'

/**
 * Returns the used share of transaction ids or multixact ids, 0 to 1, of the database with the highest share. Above `maxUsed`, ends the sessions
 * in such databases that are older than `minAgeS` seconds: a session of several days keeps its temporary tables from being frozen, or holds a
 * lock that vacuum needs.
 */
export async function guardTransactionIds(session: Session, { maxUsed = MAX_USED, minAgeS = MIN_AGE_S } = {}): Promise<number> {
  const [row] = await session.query<{ used: number }>(`SELECT max(${USED})::float8 AS used FROM pg_database`)
  const used = row?.used ?? 0
  if (used > maxUsed) {
    await session.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity JOIN pg_database d ON d.oid = datid
       WHERE ${USED} > $1 AND backend_type = 'client backend' AND usename <> current_user
         AND clock_timestamp() - backend_start > $2 * interval '1 second'`,
      [maxUsed, minAgeS],
    )
  }
  return used
}
