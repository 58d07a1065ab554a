import { type Suspension, SuspensionCause } from '../engine.ts'
import { kindOf } from './catalog.ts'
import type { Connection } from './connection.ts'
import { suspend } from './suspension.ts'

/** Used shares of the notification queue, 0 to 1, of which a server has one of 8 GB for all databases. */
export interface QueueBounds {
  /** Share above which the tenant that fills the queue is suspended. */
  readonly suspendAt: number
  /** Share above which transactions of any tenant end that may keep the queue from shrinking. */
  readonly endAt: number
}

/** What the guard did. */
export interface QueueGuarded {
  readonly suspended: readonly Suspension[]
  /** Number of sessions of other tenants that it ended. */
  readonly ended: number
}

const BOUNDS: QueueBounds = { suspendAt: 0.02, endAt: 0.5 }
/** Minimum age in seconds of a transaction that is ended for an almost full queue. */
const PATIENCE_S = 10
/** Maximum number of segments of 32 pages whose first entries are read. */
const SAMPLES = 1_000

/**
 * Query of the database that wrote most of the segments of the queue since the time $1. An entry begins with its length and the oid of its
 * database, 4 bytes each, and no entry continues on a second page (PostgreSQL, async.c: AsyncQueueEntry). The newest pages are in memory only.
 */
const LARGEST = `
  WITH segment AS (
    SELECT pg_read_binary_file('pg_notify/' || name, 4, 4, true) AS bytes FROM pg_ls_dir('pg_notify') AS name
    WHERE (pg_stat_file('pg_notify/' || name, true)).modification > $1::timestamptz
    ORDER BY random() LIMIT ${SAMPLES}),
  entry AS (
    SELECT CASE WHEN length(bytes) = 4 THEN
      (get_byte(bytes, 3)::bigint << 24) + (get_byte(bytes, 2) << 16) + (get_byte(bytes, 1) << 8) + get_byte(bytes, 0) END AS datid
    FROM segment)
  SELECT datname AS name, (SELECT oid FROM pg_roles WHERE rolname = datname) AS role
  FROM entry JOIN pg_database ON oid = datid GROUP BY datname ORDER BY count(*) DESC LIMIT 1`

const END_OLD = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
  WHERE backend_type = 'client backend' AND NOT rolsuper AND clock_timestamp() - xact_start > ${PATIENCE_S} * interval '1 second'`

/**
 * Creates the guard of the server's notification queue. A listening session that is in a transaction keeps what was sent since from being
 * removed, and a full queue makes each NOTIFY of every database fail. The queue does not show which sessions listen, so the guard suspends the
 * tenant that fills it, also when another one keeps it from shrinking.
 */
export function createQueueGuard(connection: Connection, bounds: Partial<QueueBounds> = {}): () => Promise<QueueGuarded> {
  const { suspendAt, endAt } = { ...BOUNDS, ...bounds }
  const { watch } = connection
  /** Time of the last suspension: older pages belong to a tenant that has been suspended. */
  let since = '-infinity'

  return async function guard() {
    const [queue] = await watch.query<{ used: number; now: string }>(
      'SELECT pg_notification_queue_usage() AS used, clock_timestamp()::text AS now',
    )
    const used = queue?.used ?? 0
    if (used <= suspendAt) return { suspended: [], ended: 0 }
    const [largest] = await watch.query<{ name: string; role: number | null }>(LARGEST, [since])
    let suspended: readonly Suspension[] = []
    if (largest && largest.role !== null && kindOf(largest.name) === 'tenant') {
      suspended = await suspend(connection, [largest.role], SuspensionCause.notifications)
      since = queue?.now ?? since
    }
    return { suspended, ended: used > endAt ? (await watch.query(END_OLD)).length : 0 }
  }
}
