import { setTimeout as delay } from 'node:timers/promises'
import type { ConnectionOptions } from 'node:tls'
import pg from 'pg'
import type { AdminTarget } from '../engine.ts'
import { createEndedSessions, type EndedSessions } from './sessions/ended-sessions.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import { type Blockers, createBlockers, createLockTable, type LockTable } from './locks.ts'
import type { Session } from './session.ts'
import { createStalls, type Stalls } from './sessions/stalls.ts'

export type { Session }

/**
 * The administrator's connections to one server. Each kind of work has its own connections, so that a statement which one tenant delays
 * keeps no connection from the claims of other tenants or from the watchdog. Tenants' sessions are ended when they block a statement of the
 * administrator or fill the lock table.
 */
export interface Connection extends Session, AsyncDisposable {
  /** Runs claims and reads of the catalog. */
  readonly query: Session['query']
  /** Session for changes to one tenant's role or database, which may wait for the tenant's own locks. */
  readonly tenants: Session
  /** Session for CREATE DATABASE of empty databases. */
  readonly spares: Session
  /** Session for CREATE DATABASE of copies, whose duration grows with the size of the template. */
  readonly copies: Session
  /** Session for DROP DATABASE, which waits for a checkpoint and, in 15, for a barrier. Only {@link createRemovals} and VACUUM use it. */
  readonly drops: Session
  /** Session of the watchdog. */
  readonly watch: Session
  readonly lockTable: LockTable
  /** Sessions of tenants that were told to end. */
  readonly ended: EndedSessions
  /** Work of the administrator that sessions of tenants keep from being done. */
  readonly stalls: Stalls
  /** Runs `work` in another database on a new connection, and returns once the server has ended that session. */
  inside<T>(database: string, work: (session: Session) => Promise<T>): Promise<T>
}

/** Timeouts of the administrator's connections, in ms. */
export interface Timeouts {
  readonly connectMs: number
  /** Maximum duration of most statements. */
  readonly statementMs: number
  /** Maximum duration of a statement that reads or writes whole databases. */
  readonly longStatementMs: number
  /** Maximum duration of DROP DATABASE or VACUUM, which may wait for something that is no lock. No caller waits that long (removals.ts). */
  readonly dropMs: number
  /** Maximum wait for one lock. Tenants' sessions that block are ended earlier, so this bounds waits for other sessions. */
  readonly lockMs: number
}

export const TIMEOUTS: Timeouts = {
  connectMs: 5_000,
  statementMs: 30_000,
  longStatementMs: 600_000,
  dropMs: 60_000,
  lockMs: 4_000,
}

/** Maximum connections of a {@link Connection}. Their sum is less than the slots that the server reserves (settings.ts). */
const SIZES = {
  claims: { min: 1, max: 2 },
  tenants: { min: 0, max: 4 },
  // CREATE DATABASE waits for disk and checkpoints: four in parallel create twice as many databases per second as two.
  spares: { min: 0, max: 4 },
  copies: { min: 0, max: 2 },
  // One more than removals run at a time.
  drops: { min: 0, max: 3 },
  // Always open, because the watchdog frees connection slots when all are taken.
  watch: { min: 1, max: 1 },
  inside: 4,
} as const

const MAINTENANCE = 'postgres'
/** Time in ms for the cancellation of statements when the connection closes: the server may not respond. */
const CANCEL_MS = 1_000

/** Returns the driver's TLS options; false for a target without a CA, which is on loopback. */
export function tlsTo({ ca, client }: Pick<AdminTarget, 'ca' | 'client'>): ConnectionOptions | false {
  return ca === undefined ? false : { ca, ...(client && { cert: client.certificate, key: client.key }) }
}

/** Returns the driver's options for a login of any role. */
export function dialling(target: Omit<AdminTarget, 'user' | 'password'>, timeouts: Timeouts): pg.ClientConfig {
  const { host, port } = target
  return {
    host,
    port,
    ssl: tlsTo(target),
    connectionTimeoutMillis: timeouts.connectMs,
    keepAlive: true,
    application_name: 'mooring',
  }
}

/**
 * Creates the administrator's connections to a server. Each kind of session connects at its first call, and reconnects at the first call
 * after a loss. Statements throw the driver's errors.
 */
export function connect(target: AdminTarget, timeouts: Timeouts = TIMEOUTS): Connection {
  const config = (statementMs: number): pg.ClientConfig => ({
    ...dialling(target, timeouts),
    user: target.user,
    password: target.password,
    statement_timeout: statementMs,
    lock_timeout: timeouts.lockMs,
    // Later than the server's own timeout: bounds the wait for a server that does not respond.
    query_timeout: statementMs + 5_000,
    // The administrator's statements must not resolve to functions or operators in tenants' schemas.
    // They enter closed databases (closing.ts).
    options: '-c search_path=pg_catalog -c session_preload_libraries=',
  })
  const pools: pg.Pool[] = []
  const poolOf = (statementMs: number, size: { min: number; max: number }): pg.Pool => {
    const pool = new pg.Pool({ ...config(statementMs), database: MAINTENANCE, ...size, idleTimeoutMillis: 30_000 })
    pools.push(pool)
    // A broken idle connection emits an error at the pool. A connection that breaks during a statement also emits an error at the client.
    // Without listeners either event would end the process.
    pool.on('connect', (client) => client.on('error', ignore))
    return pool.on('error', ignore)
  }
  const lockTable = createLockTable({ ...config(timeouts.statementMs), database: MAINTENANCE })
  const watch = persistent(sessionOf(poolOf(timeouts.statementMs, SIZES.watch)), lockTable)
  const ended = createEndedSessions()
  const stalls = createStalls()
  const blockers = createBlockers((text, values) => watch.query(text, values), ended)
  const guarded = (statementMs: number, size: { min: number; max: number }) =>
    persistent(guardedSession(poolOf(statementMs, size), { blockers, stalls }), lockTable)
  const acquire = createSemaphore(SIZES.inside)

  async function inside<T>(database: string, work: (session: Session) => Promise<T>): Promise<T> {
    const release = await acquire()
    let client: pg.Client | undefined
    try {
      client = await lockTable.during(() => logIn({ ...config(timeouts.longStatementMs), database }))
      const session = persistent(sessionOf(client), lockTable)
      return await blockers.during(pidOf(client), () => work(session))
    } finally {
      await Promise.resolve(client?.end()).finally(release)
    }
  }

  async function close(): Promise<void> {
    blockers[Symbol.dispose]()
    // A drop that waits for a tenant would delay the end by its whole bound.
    await Promise.race([blockers.cancelAll(), delay(CANCEL_MS, undefined, { ref: false })])
    await Promise.all([...pools.map((pool) => pool.end()), lockTable[Symbol.asyncDispose]()])
  }

  let closed: Promise<void> | undefined
  return {
    ...guarded(timeouts.statementMs, SIZES.claims),
    tenants: guarded(timeouts.statementMs, SIZES.tenants),
    spares: guarded(timeouts.longStatementMs, SIZES.spares),
    copies: guarded(timeouts.longStatementMs, SIZES.copies),
    drops: guarded(timeouts.dropMs, SIZES.drops),
    watch,
    lockTable,
    ended,
    stalls,
    inside,
    async [Symbol.asyncDispose]() {
      closed ??= close()
      await closed
    },
  }
}

/** Listener for errors of a connection, which the statement that uses the connection reports. */
export function ignore(): void {
  // Empty: the statement rejects.
}

function sessionOf(client: pg.Pool | pg.Client | pg.PoolClient): Session {
  return {
    async query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]> {
      const result: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await client.query<Row>(text, values)
      // Several statements return a list of results, which the driver's types omit. No caller reads the rows of such a list.
      return 'rows' in result ? result.rows : []
    },
  }
}

/** Returns a session that repeats statements which failed because the lock table was full. */
function persistent(session: Session, lockTable: LockTable): Session {
  return { query: (text, values) => lockTable.during(() => session.query(text, values)) }
}

async function logIn(config: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client(config)
  client.on('error', ignore)
  try {
    await client.connect()
    return client
  } catch (error) {
    await client.end().catch(ignore)
    throw error
  }
}

interface Guards {
  readonly blockers: Blockers
  readonly stalls: Stalls
}

/** Returns a session that ends tenants' sessions which block its statements. Closes a connection after a failed statement. */
function guardedSession(pool: pg.Pool, { blockers, stalls }: Guards): Session {
  return {
    async query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]> {
      const client = await pool.connect()
      let failed = true
      try {
        const rows = await blockers.during(pidOf(client), () => sessionOf(client).query<Row>(text, values))
        failed = false
        return rows
      } catch (error) {
        if (sqlStateOf(error) === SqlState.lockNotAvailable) stalls.lockFailed()
        throw error
      } finally {
        client.release(failed)
      }
    },
  }
}

/** Returns the process id of the server's backend, which the driver's types omit (PostgreSQL documentation, "BackendKeyData"). */
function pidOf(client: pg.ClientBase): number {
  return (client as pg.ClientBase & { readonly processID: number }).processID
}

/** Returns the `acquire` function of a first-in-first-out semaphore with `count` slots. It resolves to the function that releases the slot. */
function createSemaphore(count: number): () => Promise<() => void> {
  let free = count
  const waiting: (() => void)[] = []

  function release(): void {
    const next = waiting.shift()
    if (next) next()
    else free += 1
  }

  return async function acquire() {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    return release
  }
}

export const quoteName = (name: string): string => pg.escapeIdentifier(name)
export const quoteText = (text: string): string => pg.escapeLiteral(text)
