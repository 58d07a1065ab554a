import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { SqlState, sqlStateOf } from './errors.ts'

/**
 * Ends the sessions of the tenant that holds most entries of the lock table, or of the table of predicate locks, once a third of the table
 * is taken. Reads no relation. Locks are attributed by session, or by database where the session that took a predicate lock is gone.
 */
const END_HOARDER = `
  WITH session AS (SELECT pid, datid, usesysid AS role, backend_type FROM pg_stat_get_activity(NULL)),
  entry AS (
    SELECT l.mode = 'SIReadLock' AS predicate, coalesce(s.datid, l.database) AS datid
    FROM pg_lock_status() l LEFT JOIN session s USING (pid)
    WHERE NOT l.fastpath AND s.role IS DISTINCT FROM (SELECT role FROM session WHERE pid = pg_backend_pid())),
  tenant AS (
    SELECT predicate, datid, count(*) AS held, sum(count(*)) OVER (PARTITION BY predicate) AS taken FROM entry GROUP BY 1, 2),
  hoarder AS (
    SELECT DISTINCT ON (predicate) datid FROM tenant
    WHERE taken > current_setting('max_connections')::bigint / 3.0
      * current_setting(CASE WHEN predicate THEN 'max_pred_locks_per_transaction' ELSE 'max_locks_per_transaction' END)::bigint
    ORDER BY predicate, held DESC)
  SELECT role, pg_terminate_backend(pid) FROM session
  WHERE backend_type = 'client backend' AND datid IN (SELECT datid FROM hoarder)
    AND role <> (SELECT role FROM session WHERE pid = pg_backend_pid())`

/** Every catalog with its indexes stays locked by a transaction that has planned a query on it. */
const LOCK_CATALOGS = `
  SELECT string_agg(format('SELECT FROM %s LIMIT 0', oid::regclass), '; ') AS statements
  FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'`

const ATTEMPTS = 40
const PAUSE_MS = 50

/**
 * Keeps the server's lock tables usable. Every session takes its locks out of one table, logins included, and any role can fill it: by
 * advisory locks, by tables, by predicate locks of SERIALIZABLE.
 */
export interface LockTable extends AsyncDisposable {
  /** Ends the sessions of the tenant that fills a lock table. Returns how many there were. */
  endHoarder(): Promise<number>
  /** Returns the oids of the roles whose sessions were ended since the last call. */
  takeHoarders(): readonly number[]
  /**
   * Runs a statement of the administrator. When a lock table is full, ends the sessions that fill it and runs the statement again: it
   * failed as a whole.
   */
  during<T>(statement: () => Promise<T>): Promise<T>
}

/**
 * Works over a connection of its own, whose transaction stays open and holds every lock that {@link END_HOARDER} takes: with the lock table
 * full, no other login or statement succeeds. Between its statements the transaction has neither a snapshot nor an id, so that it delays no
 * vacuum, and its AccessShareLocks conflict with nothing but VACUUM FULL and the like on a system catalog.
 */
export function createLockTable(config: pg.ClientConfig): LockTable {
  let opened: Promise<pg.Client> | undefined
  let hoarders = new Set<number>()

  /** The connection; a new one where there is none or the last one is lost. */
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

  async function endHoarder(): Promise<number> {
    const client = await connection()
    try {
      // Within a transaction the list of sessions stays as it was first read.
      await client.query('SELECT pg_stat_clear_snapshot()')
      const { rows } = await client.query<{ role: number }>(END_HOARDER)
      for (const { role } of rows) hoarders.add(role)
      return rows.length
    } catch (error) {
      // A transaction in which a statement failed runs no further ones.
      await client.end().catch(() => undefined)
      throw error
    }
  }

  return {
    endHoarder,
    takeHoarders() {
      const taken = [...hoarders]
      hoarders = new Set()
      return taken
    },
    async during(statement) {
      // Opened before it is needed. Where that fails, the statement reports why.
      connection().catch(() => undefined)
      let isFreed = false
      for (let attempt = 1; ; attempt++) {
        try {
          return await statement()
        } catch (error) {
          if (sqlStateOf(error) !== SqlState.outOfMemory || attempt === ATTEMPTS) throw error
          // Sessions that were ended hold their locks for a moment.
          isFreed = (await endHoarder()) > 0 || isFreed
          if (!isFreed) throw error
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
