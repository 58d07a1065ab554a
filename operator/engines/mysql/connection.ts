import { connect as connectSocket, isIP, type Socket } from 'node:net'
import mysql, {
  type Connection as MysqlConnection,
  type ConnectionOptions,
  type Pool,
  type PoolConnection,
  type RowDataPacket,
} from 'mysql2/promise'
import type { AdminTarget } from '../engine.ts'
import { codeOf } from '../../../shared/errors.ts'
import { Errno, errnoOf } from './errors.ts'

/** Session of the administrator, without a default database. */
export interface Session {
  /** Runs one or several statements; `?` stands for a value. Returns the rows of a single statement. */
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>
}

/** Session whose statements may be bounded in time. */
export interface BoundedSession extends Session {
  /**
   * Runs a statement that is ended by KILL QUERY after `ms`.
   * @throws Overrun when it was ended; the session must not be used any more where it is the caller's own
   */
  within<Row extends object>(ms: number, text: string): Promise<Row[]>
}

/** Error of a statement that was ended because it ran for longer than its bound. */
export class Overrun extends Error {}

/**
 * The administrator's connections to one server. Each kind of work has its own connections, so that a statement delayed by one tenant
 * takes no connection from claims of other tenants or from the watchdog.
 */
export interface Connection extends Session, AsyncDisposable {
  /** Runs claims and reads of the catalog. */
  readonly query: Session['query']
  /** Session for changes to one tenant's account or database, which may wait for the tenant's own locks. */
  readonly tenants: Session
  /** Session of the watchdog. */
  readonly watch: BoundedSession
  /** Runs `work` with a session of its own, which accepts one statement per call. Closing it afterwards ends its variables and locks. */
  readonly alone: <T>(work: (session: BoundedSession) => Promise<T>) => Promise<T>
  /** Does the same with other connections, so that `work` may hold locks while it calls `alone`. */
  readonly frozen: Connection['alone']
}

/** Timeouts of the administrator's connections. */
export interface Timeouts {
  readonly connectMs: number
  /** Maximum duration of most statements. */
  readonly statementMs: number
  /** Maximum duration of a statement that reads or writes whole databases. */
  readonly longStatementMs: number
  /** Maximum wait for one metadata lock or row lock, in seconds. */
  readonly lockS: number
}

export const TIMEOUTS: Timeouts = { connectMs: 5_000, statementMs: 30_000, longStatementMs: 600_000, lockS: 1 }

/** Maximum connections of a {@link Connection}; `frozen` has as many as `alone`. Their sum is less than the connections that the server reserves (settings.ts). */
const SIZES = { claims: 2, tenants: 6, watch: 2, alone: 3 } as const

/** Returns the driver's options for a login of any account. */
export function dialling(target: Omit<AdminTarget, 'user' | 'password'>, timeouts: Timeouts): ConnectionOptions {
  const { host, port, ca, client } = target
  return {
    host,
    port,
    connectTimeout: timeouts.connectMs,
    charset: 'utf8mb4',
    dateStrings: true,
    ...(ca !== undefined && {
      // The driver verifies host names only. For an IP address it checks that the CA of the installation signed the certificate.
      ssl: { ca, verifyIdentity: isIP(host) === 0, ...(client && { cert: client.certificate, key: client.key }) },
    }),
  }
}

/** Time in ms after which the administrator's own address counts as not reachable. */
const REACH_MS = 1_000

/** Connects to the administrator's own address. An address that drops packets fails like one that rejects them, only later. */
function reach(address: NonNullable<AdminTarget['adminAddress']>): Socket {
  const socket = connectSocket({ ...address, noDelay: true, keepAlive: true })
  const timer = setTimeout(() => {
    socket.destroy(Object.assign(new Error('the administrator’s own address cannot be reached'), { code: 'EHOSTUNREACH' }))
  }, REACH_MS)
  for (const event of ['connect', 'close']) socket.once(event, () => clearTimeout(timer))
  return socket
}

/** Returns the driver's options for logins at the address for the administrator alone; undefined when there is none. */
export function diallingAdmin(target: Omit<AdminTarget, 'user' | 'password'>, timeouts: Timeouts): ConnectionOptions | undefined {
  const { adminAddress } = target
  // The host stays that of the server: its certificate has that name.
  return adminAddress && { ...dialling(target, timeouts), stream: () => reach(adminAddress) }
}

/** Errors of an address at which nothing listens. The proxy of Docker accepts a connection to such a port, and closes it. */
const UNREACHED: readonly (string | undefined)[] = [
  ...['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH'],
  ...['ECONNRESET', 'PROTOCOL_CONNECTION_LOST'],
]

/**
 * Runs `dial` for the administrator's own address. Where there is none, nothing listens there or its connections are used up, runs it for the
 * address of all clients.
 */
async function preferringAdmin<Dial, T>(own: Dial | undefined, common: Dial, dial: (at: Dial) => Promise<T>): Promise<T> {
  if (own === undefined) return dial(common)
  try {
    return await dial(own)
  } catch (error) {
    if (errnoOf(error) !== Errno.tooManyConnections && !UNREACHED.includes(codeOf(error))) throw error
    return dial(common)
  }
}

/** Opens a connection of the administrator. @throws errors of the driver */
export async function logInAsAdmin(target: AdminTarget, timeouts: Timeouts): Promise<MysqlConnection> {
  const { user, password } = target
  const dial = (at: ConnectionOptions) => mysql.createConnection({ ...at, user, password })
  return preferringAdmin(diallingAdmin(target, timeouts), dialling(target, timeouts), dial)
}

/**
 * Returns the statement that sets up each session of the administrator. Its SQL mode keeps backslash escapes, which the driver assumes, and
 * copies zeros of AUTO_INCREMENT columns and invalid dates unchanged.
 */
const initialise = ({ lockS }: Timeouts): string =>
  `SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION', ` +
  `SESSION lock_wait_timeout = ${lockS}, SESSION innodb_lock_wait_timeout = ${lockS}, ` +
  // By default MySQL 8.0 shows sizes that are up to a day old. MariaDB ignores the comment.
  `SESSION transaction_isolation = 'READ-COMMITTED' /*!80000 , SESSION information_schema_stats_expiry = 0 */`

/** Returns the same statement for MariaDB, which before 11.1 has only the former name of one variable. */
const initialiseMariadb = (timeouts: Timeouts): string =>
  initialise(timeouts).replace('SESSION transaction_isolation', 'SESSION tx_isolation')

interface ConnectOptions {
  readonly family: 'mysql' | 'mariadb'
  readonly timeouts?: Timeouts
}

/**
 * Creates the administrator's connections to a server. Each kind of session connects at its first call, and reconnects at the first call
 * after a loss. Statements throw the driver's errors.
 */
export function connect(target: AdminTarget, { family, timeouts = TIMEOUTS }: ConnectOptions): Connection {
  const pools: Pool[] = []
  const setUp = family === 'mariadb' ? initialiseMariadb(timeouts) : initialise(timeouts)
  const prepared = new WeakSet<object>()

  function poolAt(at: ConnectionOptions, connectionLimit: number, statements: 'one' | 'several'): Pool {
    const { user, password } = target
    const pool = mysql.createPool({
      ...at,
      user,
      password,
      connectionLimit,
      maxIdle: 1,
      idleTimeout: 30_000,
      multipleStatements: statements === 'several',
    })
    pools.push(pool)
    return pool
  }

  function poolsOf(connectionLimit: number, statements: 'one' | 'several' = 'several'): Pools {
    const own = diallingAdmin(target, timeouts)
    return {
      own: own && poolAt(own, connectionLimit, statements),
      common: poolAt(dialling(target, timeouts), connectionLimit, statements),
    }
  }

  async function checkOut({ own, common }: Pools): Promise<PoolConnection> {
    const client = await preferringAdmin(own, common, (pool) => pool.getConnection())
    if (prepared.has(client.connection)) return client
    try {
      await client.query({ sql: setUp, timeout: timeouts.statementMs })
    } catch (error) {
      client.destroy()
      throw error
    }
    prepared.add(client.connection)
    return client
  }

  /** Runs `work` with a connection of the pools. */
  async function borrow<T>(from: Pools, work: (client: PoolConnection) => Promise<T>): Promise<T> {
    const client = await checkOut(from)
    try {
      const result = await work(client)
      client.release()
      return result
    } catch (error) {
      // After a timeout the connection still waits for the server's response.
      if (errnoOf(error) === undefined) client.destroy()
      else client.release()
      throw error
    }
  }

  function pooled(size: number): BoundedSession {
    const from = poolsOf(size)
    return {
      query: (text, values) => borrow(from, (client) => sessionOf(client, timeouts.statementMs).query(text, values)),
      within: (ms, text) => borrow(from, (client) => sessionOf(client, timeouts.statementMs).within(ms, text)),
    }
  }

  const sessionOf = (client: PoolConnection, timeout: number): BoundedSession => ({
    query: async (text, values) => (await run(client, { text, values, timeout })) as never,
    within: async (ms, text) =>
      (await endAfter(ms, { killer: claims, client }, run(client, { text, values: undefined, timeout }))) as never,
  })

  function separate(size: number): Connection['alone'] {
    const from = poolsOf(size, 'one')
    return async (work) => {
      const client = await checkOut(from)
      try {
        return await work(sessionOf(client, timeouts.longStatementMs))
      } finally {
        client.destroy()
      }
    }
  }

  let ended: Promise<unknown> | undefined
  const claims = pooled(SIZES.claims)
  return {
    query: (text, values) => claims.query(text, values),
    tenants: pooled(SIZES.tenants),
    watch: pooled(SIZES.watch),
    alone: separate(SIZES.alone),
    frozen: separate(SIZES.alone),
    async [Symbol.asyncDispose]() {
      ended ??= Promise.all(pools.map((pool) => pool.end()))
      await ended
    },
  }
}

/** Connections of one kind of work. Those of a pool that is not used cost nothing. */
interface Pools {
  /** To the administrator's own address; undefined where there is none. */
  readonly own: Pool | undefined
  /** To the address of all clients. */
  readonly common: Pool
}

interface Running {
  /** Session that sends the KILL. */
  readonly killer: Session
  readonly client: PoolConnection
}

/** Returns the result of a running statement. @throws Overrun when it was ended after `ms`, even where it succeeded by then */
async function endAfter<T>(ms: number, { killer, client }: Running, statement: Promise<T>): Promise<T> {
  let kill: Promise<unknown> | undefined
  const timer = setTimeout(() => {
    kill = killer.query(`KILL QUERY ${client.threadId}`).catch(() => undefined)
  }, ms)
  await Promise.allSettled([statement])
  clearTimeout(timer)
  if (!kill) return statement
  await kill
  throw new Overrun(`ended after ${ms} ms`)
}

interface Statement {
  readonly text: string
  readonly values: readonly unknown[] | undefined
  readonly timeout: number
}

/** Runs one or several statements. Only the rows of a single statement are meaningful; callers ignore other results. */
async function run(client: PoolConnection, { text, values, timeout }: Statement): Promise<readonly RowDataPacket[]> {
  try {
    const [rows] = await client.query<RowDataPacket[]>({ sql: text, timeout, ...(values && { values: [...values] }) })
    return Array.isArray(rows) ? rows : []
  } catch (error) {
    // The driver's error quotes the statement, which may contain a password.
    if (error instanceof Error && 'sql' in error) delete error.sql
    throw error
  }
}
