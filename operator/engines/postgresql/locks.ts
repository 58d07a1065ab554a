import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { createBarrierCheck } from './sessions/barrier.ts'
import { type EndedSessions, SESSION_ID } from './sessions/ended-sessions.ts'
import { SqlState, sqlStateOf } from './errors.ts'

/** Time that a statement of the administrator runs before its blockers are ended, in ms. */
const PATIENCE_MS = 150
/** Interval of the check for blockers, in ms. */
const CHECK_INTERVAL_MS = 100

/**
 * Statement that ends the tenants' sessions whose locks block the sessions with the pids $1, directly or through other sessions. Skips a
 * session that itself waits for a lock: a later check ends it if it still blocks the administrator when it no longer waits.
 */
const END_BLOCKERS = `
  WITH RECURSIVE blocker (pid) AS (
    SELECT unnest(pg_blocking_pids(waiting)) FROM unnest($1::int[]) AS waiting
    UNION
    SELECT unnest(pg_blocking_pids(pid)) FROM blocker)
  SELECT pg_terminate_backend(pid), ${SESSION_ID} AS id FROM blocker JOIN pg_stat_activity USING (pid)
  WHERE backend_type = 'client backend' AND usename <> current_user AND wait_event_type IS DISTINCT FROM 'Lock'`

/** Protection of the administrator's statements from locks of tenants, and from their sessions that keep a barrier: ends these sessions. */
export interface Blockers extends Disposable {
  /** Runs `work`, and ends the sessions that block the session with this pid meanwhile. */
  during<T>(pid: number, work: () => Promise<T>): Promise<T>
  /** Cancels the statements that run now. Never rejects. */
  cancelAll(): Promise<void>
}

type Run = <Row extends pg.QueryResultRow>(text: string, values: unknown[]) => Promise<Row[]>

/**
 * Creates the protection. Its timer runs only while a statement does. `run` sends one statement over a connection of its own, so that a
 * check never waits for the blocked statements.
 */
export function createBlockers(run: Run, ended: EndedSessions): Blockers {
  /** Start time and pid of each statement. Each has a key of its own, because consecutive statements may share a session. */
  const running = new Map<symbol, { readonly pid: number; readonly since: number }>()
  const endHolders = createBarrierCheck(run)
  let timer: NodeJS.Timeout | undefined
  let isChecking = false

  async function endBlockers(): Promise<void> {
    const now = performance.now()
    const late = [...running.values()].filter(({ since }) => now - since >= PATIENCE_MS).map(({ pid }) => pid)
    if (late.length === 0 || isChecking) return
    isChecking = true
    try {
      ended.record((await run<{ id: string }>(END_BLOCKERS, [late])).map(({ id }) => id))
      await endHolders(late)
    } catch {
      // The blocked statement reports the server's error, or its lock_timeout ends it.
    } finally {
      isChecking = false
    }
  }

  function stop(): void {
    clearInterval(timer)
    timer = undefined
  }

  return {
    async during(pid, work) {
      const key = Symbol(pid)
      running.set(key, { pid, since: performance.now() })
      timer ??= setInterval(() => void endBlockers(), CHECK_INTERVAL_MS).unref()
      try {
        return await work()
      } finally {
        running.delete(key)
        if (running.size === 0) stop()
      }
    },
    async cancelAll() {
      const pids = [...running.values()].map(({ pid }) => pid)
      if (pids.length === 0) return
      // A server that does not respond ends them by their timeouts.
      await run('SELECT pg_cancel_backend(pid) FROM unnest($1::int[]) AS pid', [pids]).catch(() => undefined)
    },
    [Symbol.dispose]: stop,
  }
}

/**
 * Statement that ends the sessions of the tenant with the most entries in the lock table, or in the predicate lock table, once a third of
 * the table is used. Reads no relation, because that would take locks. Assigns a lock to the tenant of its session, or of its database when
 * the session that took a predicate lock has ended.
 */
const END_LARGEST_HOLDER = `
  WITH session AS (SELECT pid, datid, usesysid AS role, backend_type FROM pg_stat_get_activity(NULL)),
  entry AS (
    SELECT l.mode = 'SIReadLock' AS predicate, coalesce(s.datid, l.database) AS datid
    FROM pg_lock_status() l LEFT JOIN session s USING (pid)
    WHERE NOT l.fastpath AND s.role IS DISTINCT FROM (SELECT role FROM session WHERE pid = pg_backend_pid())),
  tenant AS (
    SELECT predicate, datid, count(*) AS held, sum(count(*)) OVER (PARTITION BY predicate) AS taken FROM entry GROUP BY 1, 2),
  largest AS (
    SELECT DISTINCT ON (predicate) datid FROM tenant
    WHERE taken > current_setting('max_connections')::bigint / 3.0
      * current_setting(CASE WHEN predicate THEN 'max_pred_locks_per_transaction' ELSE 'max_locks_per_transaction' END)::bigint
    ORDER BY predicate, held DESC)
  SELECT role, pg_terminate_backend(pid) FROM session
  WHERE backend_type = 'client backend' AND datid IN (SELECT datid FROM largest)
    AND role <> (SELECT role FROM session WHERE pid = pg_backend_pid())`

/** Query for the statements that lock every catalog with its indexes: planning a query locks them until the transaction ends. */
const LOCK_CATALOGS = `
  SELECT string_agg(format('SELECT FROM %s LIMIT 0', oid::regclass), '; ') AS statements
  FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'`

/** Bounds of the wait for a full lock table to be freed: 2 s. */
const ATTEMPTS = 40
const PAUSE_MS = 50

/**
 * Protection of the server's lock tables. All sessions, logins included, share one table, and any role can fill it: with advisory locks,
 * locks on tables, or predicate locks of SERIALIZABLE.
 */
export interface LockTable extends AsyncDisposable {
  /** Ends the sessions of the tenant that fills a lock table. Returns the number of these sessions. */
  endLargestHolder(): Promise<number>
  /** Returns the oids of the roles whose sessions were ended since the last call. */
  takeEndedRoles(): readonly number[]
  /**
   * Runs a statement of the administrator. When a lock table is full, the statement has failed without effect: ends the sessions that fill
   * the table and runs the statement again.
   */
  during<T>(statement: () => Promise<T>): Promise<T>
}

/**
 * Creates the protection over a connection of its own. Its transaction stays open and already holds every lock that {@link END_LARGEST_HOLDER}
 * takes, because no other login or statement succeeds while the lock table is full. Between statements the transaction has neither a
 * snapshot nor an id, so that it delays no vacuum. Its AccessShareLocks conflict only with exclusive operations on a system catalog, such as
 * VACUUM FULL.
 */
export function createLockTable(config: pg.ClientConfig): LockTable {
  let opened: Promise<pg.Client> | undefined
  let endedRoles = new Set<number>()
  /** Time of the last end of sessions, in ms of `performance.now()`. */
  let endedAt = -Infinity

  /** Returns the open connection, or opens a new one after a loss. */
  function connection(): Promise<pg.Client> {
    if (opened) return opened
    const client = new pg.Client(config)
    const opening = open(client)
    const forget = (): void => {
      if (opened === opening) opened = undefined
    }
    client.on('error', forget).on('end', forget)
    opening.catch(forget)
    opened = opening
    return opening
  }

  async function endLargestHolder(): Promise<number> {
    const client = await connection()
    try {
      // Within a transaction PostgreSQL caches the list of sessions.
      await client.query('SELECT pg_stat_clear_snapshot()')
      const { rows } = await client.query<{ role: number }>(END_LARGEST_HOLDER)
      for (const { role } of rows) endedRoles.add(role)
      if (rows.length > 0) endedAt = performance.now()
      return rows.length
    } catch (error) {
      // A transaction with a failed statement cannot run further statements.
      await client.end().catch(() => undefined)
      throw error
    }
  }

  return {
    endLargestHolder,
    takeEndedRoles() {
      const taken = [...endedRoles]
      endedRoles = new Set()
      return taken
    },
    async during(statement) {
      // Opens the connection in advance. If that fails, the statement below reports the error.
      connection().catch(() => undefined)
      for (let attempt = 1; ; attempt++) {
        try {
          return await statement()
        } catch (error) {
          if (sqlStateOf(error) !== SqlState.outOfMemory || attempt === ATTEMPTS) throw error
          await endLargestHolder()
          // Terminated sessions release their locks with a short delay. An earlier statement may have ended them.
          if (performance.now() - endedAt > ATTEMPTS * PAUSE_MS) throw error
          await delay(PAUSE_MS)
        }
      }
    },
    async [Symbol.asyncDispose]() {
      await opened?.then((client) => client.end()).catch(() => undefined)
    },
  }
}

async function open(client: pg.Client): Promise<pg.Client> {
  try {
    await client.connect()
    const [row] = (await client.query<{ statements: string }>(LOCK_CATALOGS)).rows
    await client.query(`BEGIN; ${row?.statements ?? ''}`)
    return client
  } catch (error) {
    await client.end().catch(() => undefined)
    throw error
  }
}
