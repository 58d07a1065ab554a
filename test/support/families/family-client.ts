import { isIP } from 'node:net'
import { MongoClient, MongoServerError } from 'mongodb'
import mysql from 'mysql2/promise'
import { type Family, Motor, partsOf } from '../../../crds/motor.ts'
import type { Instance } from '../api/answers.ts'
import { Errno, errnoOf } from '../../../operator/engines/mysql/errors.ts'
import { query } from '../postgresql/sql.ts'

/** What tests do in a tenant's database of any family, with that family's own driver, in one session per call. */
export interface FamilyClient {
  /** Adds a row (a document) to the table (the collection) `items`, which it creates when needed. */
  add(instance: Instance, item: string): Promise<void>
  /** Adds this many rows of 1 KiB to the table `bulk`, which it creates. */
  fill(instance: Instance, rows: number): Promise<void>
  /** Number of rows of the table `bulk`. */
  filled(instance: Instance): Promise<number>
  /** Returns all items, sorted; an empty list when there is no table. */
  items(instance: Instance): Promise<readonly string[]>
  /** Returns the name of the logged-in user as the server reports it. */
  user(instance: Instance): Promise<string>
  /** Whether the driver's error says that the server rejected the login. */
  isRefusal(error: unknown): boolean
}

const sortedNames = (rows: readonly object[]): readonly string[] => rows.map((row) => String(Object.values(row)[0])).toSorted()
const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)

const postgresql: FamilyClient = {
  async add(instance, item) {
    await query(instance, `CREATE TABLE IF NOT EXISTS items (name text); INSERT INTO items VALUES ('${item}')`)
  },
  async items(instance) {
    const [found] = await query(instance, "SELECT to_regclass('items') IS NOT NULL AS found")
    return found?.found === true ? sortedNames(await query(instance, 'SELECT name FROM items')) : []
  },
  async fill(instance, rows) {
    await query(instance, `CREATE TABLE bulk AS SELECT repeat('x', 1024) AS text FROM generate_series(1, ${rows})`)
  },
  async filled(instance) {
    const [row] = await query(instance, 'SELECT count(*)::int AS n FROM bulk')
    return Number(row?.n)
  },
  async user(instance) {
    const [row] = await query(instance, 'SELECT current_user AS name')
    return String(row?.name)
  },
  isRefusal: (error) => ['28P01', '28000'].includes(String(codeOf(error))),
}

/** Options of mysql2 for TLS with the CA of a response where TLS is required. The driver compares names only, no IP addresses. */
export const mysqlTls = ({ host, tls }: Pick<Instance, 'host' | 'tls'>) =>
  tls.required ? { ssl: { ca: tls.ca ?? '', verifyIdentity: isIP(host) === 0 } } : {}

/** Opens a session of MySQL or MariaDB with the credentials in a response, over TLS with its CA where required. The caller ends it. */
export async function openMysql({ host, port, user, password, name, tls }: Instance): Promise<mysql.Connection> {
  const session = await mysql.createConnection({ host, port, user, password, database: name, ...mysqlTls({ host, tls }) })
  session.on('error', () => undefined)
  return session
}

async function ask(instance: Instance, ...statements: readonly string[]): Promise<readonly object[]> {
  const session = await openMysql(instance)
  try {
    let rows: unknown
    for (const statement of statements) [rows] = await session.query(statement)
    return rows as readonly object[]
  } finally {
    await session.end()
  }
}

/** The driver has no name for the number of MariaDB. */
const REFUSALS: readonly unknown[] = [
  ...[Errno.loginDenied, Errno.databaseDenied],
  ...[Errno.accountLockedByMysql, Errno.accountLockedByMariadb],
]

const mysqlClient: FamilyClient = {
  async add(instance, item) {
    await ask(instance, 'CREATE TABLE IF NOT EXISTS items (name text)', `INSERT INTO items VALUES ('${item}')`)
  },
  async items(instance) {
    const tables = await ask(instance, "SHOW TABLES LIKE 'items'")
    return tables.length === 0 ? [] : sortedNames(await ask(instance, 'SELECT name FROM items'))
  },
  async fill(instance, rows) {
    const doublings = Array.from({ length: Math.ceil(Math.log2(rows)) }, (_, index) => 2 ** index)
    await ask(
      instance,
      ...['CREATE TABLE bulk (text text)', "INSERT INTO bulk VALUES (REPEAT('x', 1024))"],
      ...doublings.map((present) => `INSERT INTO bulk SELECT * FROM bulk LIMIT ${Math.min(present, rows - present)}`),
    )
  },
  async filled(instance) {
    const [row] = await ask(instance, 'SELECT COUNT(*) FROM bulk')
    return Number(Object.values(row ?? {})[0])
  },
  async user(instance) {
    const [name] = sortedNames(await ask(instance, "SELECT SUBSTRING_INDEX(USER(), '@', 1)"))
    return name ?? ''
  },
  isRefusal: (error) => REFUSALS.includes(errnoOf(error)),
}

/** Opens a client of MongoDB with the credentials in a response, over TLS with its CA where required. The caller closes it. */
export async function openMongodb({ host, port, user, password, name, tls }: Instance): Promise<MongoClient> {
  const url = new URL(`mongodb://${host.includes(':') ? `[${host}]` : host}:${port}/${name}`)
  const client = new MongoClient(url.href, {
    auth: { username: user, password },
    ...{ authSource: name, directConnection: true, maxPoolSize: 1, serverSelectionTimeoutMS: 10_000 },
    ...(tls.required && { tls: true, ca: tls.ca ?? '' }),
  })
  try {
    return await client.connect()
  } catch (error) {
    await client.close()
    throw error
  }
}

const BATCH = 5_000

const mongodb: FamilyClient = {
  async add(instance, item) {
    await using client = await openMongodb(instance)
    await client.db(instance.name).collection('items').insertOne({ name: item })
  },
  async items(instance) {
    await using client = await openMongodb(instance)
    const documents = await client.db(instance.name).collection('items').find().project({ _id: 0, name: 1 }).toArray()
    return sortedNames(documents)
  },
  async fill(instance, rows) {
    await using client = await openMongodb(instance)
    const bulk = client.db(instance.name).collection('bulk')
    const text = 'x'.repeat(1024)
    for (let left = rows; left > 0; left -= BATCH) {
      await bulk.insertMany(Array.from({ length: Math.min(left, BATCH) }, () => ({ text })))
    }
  },
  async filled(instance) {
    await using client = await openMongodb(instance)
    return await client.db(instance.name).collection('bulk').countDocuments()
  },
  async user(instance) {
    await using client = await openMongodb(instance)
    const { authInfo } = await client.db(instance.name).command({ connectionStatus: 1 })
    const { authenticatedUsers } = authInfo as { authenticatedUsers: readonly { user: string }[] }
    return authenticatedUsers[0]?.user ?? ''
  },
  isRefusal: (error) => error instanceof MongoServerError && (error.code === 18 || error.code === 11),
}

const CLIENTS: Readonly<Record<Family, FamilyClient>> = { postgresql, mysql: mysqlClient, mariadb: mysqlClient, mongodb }

/** Returns the client of a motor's family. */
export const clientOf = (motor: string): FamilyClient => CLIENTS[partsOf(Motor.parse(motor)).family]
