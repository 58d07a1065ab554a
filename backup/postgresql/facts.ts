import pg from 'pg'
import { MooringError } from '../../shared/errors.ts'
import { pause } from '../../shared/timers.ts'
import type { BackupClock } from '../clock.ts'
import type { PostgresqlFiles } from './server.ts'
import { digestOf, fixOutput, OWN_TABLES, quoted, type TableDigest, type TableName } from './table-digest.ts'

/** Rows of a running server at one position of its log, with which a restore to that position is compared. */
export interface Facts {
  readonly database: string
  /** Position in the log, such as `0/3000060`. */
  readonly position: string
  /** Time of the position, in ms by the server's clock. */
  readonly at: number
  readonly snapshot: Snapshot
  /** Smallest first. Tables beyond the bounds of size and time are left out. */
  readonly tables: readonly (TableName & TableDigest)[]
}

/** Transactions whose changes the facts do not have. */
interface Snapshot {
  /** Id of the next transaction. */
  readonly next: bigint
  /** Ids of transactions that had not ended. */
  readonly underWay: readonly bigint[]
}

/** Maximum size of all tables of the facts: they are read on the server of the database. */
const MAX_BYTES = 64 * 1024 * 1024
/** Time in ms after which no further table is read. */
const MAX_MS = 5_000
/** Tables in the facts at most. */
const MAX_TABLES = 500
/** Snapshots that are tried for one around which nothing is committed, at intervals of {@link AGAIN_MS}. */
const ATTEMPTS = 40
const AGAIN_MS = 50

/** A tenant's exclusive lock makes a drill without facts, rather than a queue of sessions behind this one. */
const BOUNDS = `SET statement_timeout = '${MAX_MS}ms'; SET lock_timeout = '200ms'`

export interface FactsDeps {
  readonly server: PostgresqlFiles
  readonly clock: BackupClock
  readonly signal: AbortSignal
}

/** Reads the smallest tables of the largest database, at most 64 MiB for about 5 s. @returns undefined without a table */
export async function takeFacts(deps: FactsDeps): Promise<Facts | undefined> {
  const { server, signal } = deps
  await using observer = await opened(server, signal)
  const database = await largestDatabase(observer.client)
  await using reader = await opened(server, signal, database)
  return await factsOf(deps, { database, client: reader.client, observer: observer.client })
}

/** Opens a connection, which ends at the latest when the signal aborts. */
async function opened(server: PostgresqlFiles, signal: AbortSignal, database?: string) {
  const client = await server.connect(database)
  const end = (): Promise<void> => client.end().catch(() => undefined)
  const abort = (): void => void end()
  signal.addEventListener('abort', abort, { once: true })
  return {
    client,
    async [Symbol.asyncDispose]() {
      signal.removeEventListener('abort', abort)
      await end()
    },
  }
}

interface Sessions {
  readonly database: string
  /** Session in the database, which reads the tables. */
  readonly client: pg.Client
  /** Another session, which sees commits that the transaction of the first does not. */
  readonly observer: pg.Client
}

async function factsOf({ clock, signal }: FactsDeps, sessions: Sessions): Promise<Facts | undefined> {
  const { database, client } = sessions
  await client.query(BOUNDS)
  await fixOutput(client)
  const names = await smallTables(client)
  if (names.length === 0) return undefined
  const begun = await beginAt(sessions, names, { clock, signal })
  const tables: (TableName & TableDigest)[] = []
  const end = clock.now() + MAX_MS
  for (const table of names) {
    if (clock.now() > end) break
    tables.push({ ...table, ...(await digestOf(client, table)) })
  }
  await client.query('ROLLBACK')
  return { database, ...begun, tables }
}

/** Returns the largest database: that of the tenant, except on a server that only has its own. */
async function largestDatabase(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT datname AS name FROM pg_catalog.pg_database WHERE datallowconn
      ORDER BY datistemplate, datname OPERATOR(pg_catalog.=) 'postgres', pg_catalog.pg_database_size(oid) DESC LIMIT 1`,
  )
  return rows[0]?.name ?? 'postgres'
}

async function smallTables(client: pg.Client): Promise<readonly TableName[]> {
  const { rows } = await client.query<TableName>(
    `SELECT schema, name FROM (
        SELECT s.*, pg_catalog.sum(bytes) OVER (ORDER BY bytes, oid) AS total FROM (
          SELECT n.nspname AS schema, c.relname AS name, c.oid, pg_catalog.pg_table_size(c.oid) AS bytes ${OWN_TABLES}) s) t
      WHERE total OPERATOR(pg_catalog.<=) ${MAX_BYTES} ORDER BY bytes, oid LIMIT ${MAX_TABLES}`,
  )
  return rows.map(({ schema, name }) => ({ schema, name }))
}

/**
 * Begins a transaction, and returns its snapshot and a position of the log right after it. The tables are locked before the snapshot: TRUNCATE and
 * a rewrite of a table would otherwise empty it for this transaction (PostgreSQL, "Caveats" of concurrency control). Begins anew when another
 * transaction began or ended meanwhile: the snapshot may then lack a commit before the position.
 */
async function beginAt(
  { client, observer }: Sessions,
  tables: readonly TableName[],
  { clock, signal }: Pick<FactsDeps, 'clock' | 'signal'>,
): Promise<Pick<Facts, 'position' | 'at' | 'snapshot'>> {
  for (let attempt = 1; ; attempt += 1) {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await client.query(`LOCK TABLE ${tables.map((table) => `ONLY ${quoted(table)}`).join(', ')} IN ACCESS SHARE MODE`)
    const { rows } = await client.query<Position>(
      'SELECT pg_current_snapshot()::text AS snapshot, pg_current_wal_insert_lsn()::text AS position, clock_timestamp() AS at',
    )
    const after = await observer.query<Pick<Position, 'snapshot'>>('SELECT pg_current_snapshot()::text AS snapshot')
    const [row] = rows
    const snapshot = row && snapshotOf(row.snapshot)
    if (!snapshot) throw new MooringError('invalid_facts', 'the server reported no snapshot')
    const isStill = snapshot.underWay.length === 0 && after.rows[0]?.snapshot === row.snapshot
    if (isStill || attempt === ATTEMPTS) return { snapshot, position: row.position, at: row.at.getTime() }
    await client.query('ROLLBACK')
    await pause(clock, AGAIN_MS, signal)
    signal.throwIfAborted()
  }
}

interface Position {
  readonly snapshot: string
  readonly position: string
  readonly at: Date
}

/** Parses `xmin:xmax:xip,…` (PostgreSQL, "Transaction ID and Snapshot Information Functions"). */
function snapshotOf(text: string): Snapshot | undefined {
  const [, next, underWay = ''] = /^\d+:(\d+):([\d,]*)$/.exec(text) ?? []
  if (next === undefined) return undefined
  const ids = underWay.split(',').filter((id) => id !== '')
  return { next: BigInt(next), underWay: ids.map(BigInt) }
}

/** Maximum number of transactions between a snapshot and its position of the log. */
const MAX_BETWEEN = 1_000n

/**
 * Whether a server that was restored to the position of the facts has the same transactions as the facts: none was committed between the snapshot
 * and the position.
 * @param next id of the next transaction at the end of recovery
 */
export async function isComparable(client: pg.Client, { snapshot }: Facts, next: bigint): Promise<boolean> {
  if (next - snapshot.next > MAX_BETWEEN) return false
  const between = Array.from({ length: Math.max(0, Number(next - snapshot.next)) }, (_, index) => snapshot.next + BigInt(index))
  const ids = [...snapshot.underWay, ...between].map(String)
  const { rows } = await client.query<{ committed: number }>(
    `SELECT count(*)::int AS committed FROM unnest($1::text[]) AS id WHERE pg_xact_status(id::xid8) = 'committed'`,
    [ids],
  )
  return rows[0]?.committed === 0
}

/** Compares the tables of a restored server with facts. @returns a description of the first difference; undefined when there is none */
export async function differenceFrom(
  client: pg.Client,
  { database, tables }: Facts,
  signal: AbortSignal,
): Promise<string | undefined> {
  await fixOutput(client)
  for (const { schema, name, rows, sha256 } of tables) {
    signal.throwIfAborted()
    const found = await digestOf(client, { schema, name }).catch((error: unknown) => {
      if (error instanceof pg.DatabaseError) return undefined
      throw error
    })
    if (found?.rows === rows && found.sha256 === sha256) continue
    const has = found ? `${found.rows} rows` : 'no such table that can be read'
    return `table ${schema}.${name} of database ${database} differs from the original, which had ${rows} rows: the restored server has ${has}`
  }
  return undefined
}
