import type { ConnectionOptions } from 'node:tls'
import pg from 'pg'
import type { AdminTarget } from '../engine.ts'
import { type Blockers, createBlockers } from './blockers.ts'
import { createLockTable, type LockTable } from './lock-table.ts'

/** Runs text as the administrator in the maintenance database. One text may hold several statements: they are one transaction. */
export interface Session {
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
}

/**
 * The administrator's connections to one server. Each kind of work has connections of its own, so that what one tenant delays never keeps
 * the claims of others or the watchdog waiting for a connection. A tenant's session whose lock a statement waits for is ended, and so are
 * those that fill the lock table.
 */
export interface Connection extends Session, AsyncDisposable {
  /** Claims, and reading the catalog: {@link Session.query} of the connection itself. */
  readonly query: Session['query']
  /** Changes to the role or the database of one tenant, which may wait for the tenant's own locks. */
  readonly tenants: Session
  /** CREATE DATABASE of empty databases. */
  readonly spares: Session
  /** CREATE DATABASE of copies of a tenant's database, which take as long as that is large. */
  readonly copies: Session
  /** DROP DATABASE: waits for a checkpoint. */
  readonly drops: Session
  /** The watchdog. */
  readonly watch: Session
  readonly lockTable: LockTable
  /** Runs `work` in another database on a connection of its own, and returns once the server has ended that session. */
  inside<T>(database: string, work: (session: Session) => Promise<T>): Promise<T>
}

export interface Timeouts {
  readonly connectMs: number
  readonly statementMs: number
  /** Of a statement that reads or writes whole databases. */
  readonly longStatementMs: number
  /** Longest wait for one lock. A blocker is ended long before; this is for a lock that no tenant's session holds. */
  readonly lockMs: number
}

export const TIMEOUTS: Timeouts = { connectMs: 5_000, statementMs: 30_000, longStatementMs: 600_000, lockMs: 4_000 }

/** Connections that a {@link Connection} opens at most. The server keeps more than these free for the administrator (settings.ts). */
const SIZES = {
  claims: { min: 1, max: 2 },
  tenants: { min: 0, max: 4 },
  // They share the disk and wait for checkpoints: four at once make twice as many databases a second as two.
  spares: { min: 0, max: 4 },
  copies: { min: 0, max: 2 },
  drops: { min: 0, max: 2 },
  // Always open: when every connection slot is taken, the watchdog is what frees some.
  watch: { min: 1, max: 1 },
  inside: 4,
} as const

const MAINTENANCE = 'postgres'

/** TLS options of the driver; false where the target has no CA, which is on loopback alone. */
export function tlsTo({ ca, client }: Pick<AdminTarget, 'ca' | 'client'>): ConnectionOptions | false {
  return ca === undefined ? false : { ca, ...(client && { cert: client.certificate, key: client.key }) }
}

/** Driver options of a login, by whichever role. */
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

/** Connects on the first call of each kind; a lost connection is replaced by the next call. Throws what the driver throws. */
export function connect(target: AdminTarget, timeouts: Timeouts = TIMEOUTS): Connection {
  const config = (statementMs: number): pg.ClientConfig => ({
    ...dialling(target, timeouts),
    user: target.user,
    password: target.password,
    statement_timeout: statementMs,
    lock_timeout: timeouts.lockMs,
    // The server gives up first; this is for one that does not answer any more.
    query_timeout: statementMs + 5_000,
    // Tenants own schemas: a function or operator of theirs must never be what the administrator's statement means.
    options: '-c search_path=pg_catalog',
  })
  const pools: pg.Pool[] = []
  const poolOf = (statementMs: number, size: { min: number; max: number }): pg.Pool => {
    const pool = new pg.Pool({ ...config(statementMs), database: MAINTENANCE, ...size, idleTimeoutMillis: 30_000 })
    pools.push(pool)
    // A connection may break while it is idle, when the pool has an error event, and while a statement runs, when the client has one besides
    // the statement's own rejection. Without listeners either would end the process.
    pool.on('connect', (client) => client.on('error', ignore))
    return pool.on('error', ignore)
  }
  const lockTable = createLockTable({ ...config(timeouts.statementMs), database: MAINTENANCE })
  const watch = persistent(sessionOf(poolOf(timeouts.statementMs, SIZES.watch)), lockTable)
  const blockers = createBlockers((text, values) => watch.query(text, values))
  const guarded = (statementMs: number, size: { min: number; max: number }) =>
    persistent(guardedSession(poolOf(statementMs, size), blockers), lockTable)
  const enter = createEntrance(SIZES.inside)

  async function inside<T>(database: string, work: (session: Session) => Promise<T>): Promise<T> {
    const leave = await enter()
    let client: pg.Client | undefined
    try {
      client = await lockTable.during(() => logIn({ ...config(timeouts.longStatementMs), database }))
      const session = persistent(sessionOf(client), lockTable)
      return await blockers.during(pidOf(client), () => work(session))
    } finally {
      await Promise.resolve(client?.end()).finally(leave)
    }
  }

  let ended: Promise<unknown> | undefined
  return {
    ...guarded(timeouts.statementMs, SIZES.claims),
    tenants: guarded(timeouts.statementMs, SIZES.tenants),
    spares: guarded(timeouts.longStatementMs, SIZES.spares),
    copies: guarded(timeouts.longStatementMs, SIZES.copies),
    drops: guarded(timeouts.longStatementMs, SIZES.drops),
    watch,
    lockTable,
    inside,
    async [Symbol.asyncDispose]() {
      blockers[Symbol.dispose]()
      ended ??= Promise.all([...pools.map((pool) => pool.end()), lockTable[Symbol.asyncDispose]()])
      await ended
    },
  }
}

/** The call that waits for a connection reports that it ended. */
export function ignore(): void {
  // Nothing to do: see above.
}

function sessionOf(client: pg.Pool | pg.Client | pg.PoolClient): Session {
  return {
    async query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]> {
      const result: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await client.query<Row>(text, values)
      // Text of several statements has a list of results, which the driver's types do not say; no caller reads rows of those.
      return 'rows' in result ? result.rows : []
    },
  }
}

/** A session whose statements are repeated when they found the lock table full. */
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

/** A session whose statements are freed of tenants' locks. A connection on which a statement failed is not used again. */
function guardedSession(pool: pg.Pool, blockers: Blockers): Session {
  return {
    async query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]> {
      const client = await pool.connect()
      let failed = true
      try {
        const rows = await blockers.during(pidOf(client), () => sessionOf(client).query<Row>(text, values))
        failed = false
        return rows
      } finally {
        client.release(failed)
      }
    },
  }
}

/** Process id of the server's side of a connection: the driver has it, its types do not (PostgreSQL documentation, "BackendKeyData"). */
function pidOf(client: pg.ClientBase): number {
  return (client as pg.ClientBase & { readonly processID: number }).processID
}

/** Lets `count` callers in at a time, the others in the order in which they came. A caller leaves by calling what it got. */
function createEntrance(count: number): () => Promise<() => void> {
  let free = count
  const waiting: (() => void)[] = []

  function leave(): void {
    const next = waiting.shift()
    if (next) next()
    else free += 1
  }

  return async function enter() {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    return leave
  }
}

export const quoteName = (name: string): string => pg.escapeIdentifier(name)
export const quoteText = (text: string): string => pg.escapeLiteral(text)
