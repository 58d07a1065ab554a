import { closeSync, existsSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { Buffer } from 'node:buffer'
import { MooringError } from '../../shared/errors.ts'
import type { RequestRecord } from '../port.ts'
import { RequestLines } from '../request-text.ts'
import { DATABASE_TABLES } from './databases.ts'
import { WEBHOOK_TABLES } from './deliveries.ts'
import { idOfBytes, timeOfId } from './ids.ts'

/** Layout of the file; a file of a newer layout is rejected. */
const LAYOUT = 8
const LOG_BYTES = 64 * 1024 * 1024
/** Maximum wait for a lock in milliseconds. A checkpoint and a write wait for each other no longer than the disk takes. */
const BUSY_MS = 10_000

export const DAY_MS = 86_400_000
/**
 * Period in milliseconds: requests with ids of the same period may share a row (chunks.ts). A period is the first five bytes of
 * an id, and divides a day evenly.
 */
export const CHUNK_MS = 256
/**
 * Maximum bytes of a row, except for a single longer request. SQLite stores rows of more than about 1,000 bytes on separate
 * pages.
 */
export const ROW_LENGTH = 900

/**
 * Tables of the file. Rows are sorted by tunnel, then id, as they are read. A request is in the table of its day, which is
 * dropped as a whole, and shares a row with others of its batch (chunks.ts). `minutes` sums requests up by the minute of their
 * id, with the first and last time of its requests; its `ms` sums the response times of the backend. `client_minutes` holds the
 * addresses with most requests, `client_hours` those of hours that are over. `connected_at` is the time of a tunnel's last
 * connect.
 */
const TABLES = `
  CREATE TABLE tunnels (number INTEGER PRIMARY KEY, uid TEXT NOT NULL UNIQUE, connected_at INTEGER);
  CREATE TABLE days (day INTEGER PRIMARY KEY);
  CREATE TABLE minutes (
    tunnel INTEGER NOT NULL, minute INTEGER NOT NULL, requests INTEGER NOT NULL, ms REAL NOT NULL,
    s1 INTEGER NOT NULL, s2 INTEGER NOT NULL, s3 INTEGER NOT NULL, s4 INTEGER NOT NULL, s5 INTEGER NOT NULL,
    edge INTEGER NOT NULL, bytes_in INTEGER NOT NULL, bytes_out INTEGER NOT NULL,
    first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
    PRIMARY KEY (tunnel, minute)
  ) WITHOUT ROWID;
  CREATE TABLE client_minutes (
    tunnel INTEGER NOT NULL, minute INTEGER NOT NULL, clients TEXT NOT NULL, PRIMARY KEY (tunnel, minute)
  ) WITHOUT ROWID;
  CREATE TABLE client_hours (
    tunnel INTEGER NOT NULL, minute INTEGER NOT NULL, clients TEXT NOT NULL, PRIMARY KEY (tunnel, minute)
  ) WITHOUT ROWID;
  CREATE TABLE connections (
    tunnel INTEGER NOT NULL, id BLOB NOT NULL, at INTEGER NOT NULL, type TEXT NOT NULL, ip TEXT NOT NULL, method TEXT,
    session TEXT NOT NULL, fingerprint TEXT, password TEXT, reason TEXT, ms REAL, edge TEXT NOT NULL,
    PRIMARY KEY (tunnel, id)
  ) WITHOUT ROWID;
  CREATE INDEX connections_by_id ON connections (id);
  CREATE INDEX connections_by_session ON connections (session, type);
  CREATE TABLE open_sessions (session TEXT PRIMARY KEY, tunnel INTEGER NOT NULL, id BLOB NOT NULL) WITHOUT ROWID;
  CREATE INDEX open_sessions_by_tunnel ON open_sessions (tunnel);
  CREATE TABLE audit (
    namespace TEXT NOT NULL, id BLOB NOT NULL, at INTEGER NOT NULL, actor_name TEXT, actor_kind TEXT, via TEXT NOT NULL,
    action TEXT NOT NULL, kind TEXT NOT NULL, resource TEXT NOT NULL, name TEXT NOT NULL, changes TEXT NOT NULL,
    ip TEXT, request TEXT, generation INTEGER, hostname TEXT,
    PRIMARY KEY (namespace, id)
  ) WITHOUT ROWID;
  CREATE INDEX audit_by_id ON audit (id);
  CREATE INDEX audit_by_resource ON audit (resource, generation, action);
  CREATE INDEX audit_by_hostname ON audit (hostname) WHERE hostname IS NOT NULL;
  ${WEBHOOK_TABLES}
  ${DATABASE_TABLES}
`

/** Name of the table with the requests of a day. */
export const dayTable = (day: number): string => `requests_${day}`

/** SQL that creates the table of a day. `id` is the lowest id in `records`, which `rowsOfTunnel` of request-text.ts reads. */
const createDay = (day: number): string =>
  `CREATE TABLE ${dayTable(day)} (tunnel INTEGER NOT NULL, id BLOB NOT NULL, records TEXT NOT NULL, PRIMARY KEY (tunnel, id)) WITHOUT ROWID`

/** SQL that creates and registers the table of a day. */
export const makeDay = (day: number): string => `${createDay(day)}; INSERT INTO days (day) VALUES (${day})`

/**
 * Opens or creates the file, readable by its owner alone, for the one connection that writes. A commit reaches the operating
 * system, so that it survives a crash of this process; `createLogSync` of sqlite.ts makes it durable. Checkpoints run in reader-worker.ts.
 * @throws MooringError `newer_layout`; the errors of node:sqlite
 */
export function openForWriting(path: string): DatabaseSync {
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  const db = new DatabaseSync(path, { timeout: BUSY_MS })
  try {
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;
      PRAGMA journal_size_limit = ${LOG_BYTES}; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384`)
    migrate(db, path)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Opens the file that {@link openForWriting} created, for reads and checkpoints. */
export function openForReading(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: BUSY_MS })
  db.exec(`PRAGMA query_only = ON; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${LOG_BYTES};
    PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768`)
  return db
}

/** Upgrades layout 1, whose only edge was that of the process. */
const ADD_EDGE = "ALTER TABLE connections ADD COLUMN edge TEXT NOT NULL DEFAULT 'embedded';"
/** Upgrades layout 2, whose entries lack the generation after the write. */
const ADD_GENERATION = `
  ALTER TABLE audit ADD COLUMN generation INTEGER;
  CREATE INDEX audit_by_resource ON audit (resource, generation, action);`
/** Upgrades layout 4, whose entries lack the hostname of their tunnel. */
const ADD_HOSTNAME = `
  ALTER TABLE audit ADD COLUMN hostname TEXT;
  CREATE INDEX audit_by_hostname ON audit (hostname) WHERE hostname IS NOT NULL;`
/**
 * Upgrades layout 5, whose `ms` includes responses of the edge. Their share is unknown: each response of a minute counts as
 * equally long.
 */
const BACKEND_TIMES = 'UPDATE minutes SET ms = ms * (requests - edge) / requests WHERE edge > 0;'

/**
 * Steps of the layout; each builds the next layout from the previous one, beginning with layout 1. SQL runs in one transaction; a
 * function may be interrupted, and runs again then.
 */
const STEPS: readonly (string | ((db: DatabaseSync) => void))[] = [
  ADD_EDGE,
  ADD_GENERATION,
  packDays,
  ADD_HOSTNAME,
  BACKEND_TIMES,
  WEBHOOK_TABLES,
  DATABASE_TABLES,
]

/** Creates the tables, or upgrades those of an earlier layout. */
function migrate(db: DatabaseSync, path: string): void {
  const layout = Number(db.prepare('PRAGMA user_version').get()?.user_version)
  if (layout > LAYOUT) throw new MooringError('newer_layout', `the journal in ${path} was written by a newer version of Mooring`)
  if (layout === 0) {
    db.exec(`BEGIN IMMEDIATE; ${TABLES} PRAGMA user_version = ${LAYOUT}; COMMIT`)
    // After SQLite itself has synced the log, its name in the directory is durable too.
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  }
  for (const [index, step] of STEPS.entries()) {
    if (layout === 0 || layout > index + 1) continue
    const next = `PRAGMA user_version = ${index + 2}`
    if (typeof step === 'string') db.exec(`BEGIN IMMEDIATE; ${step} ${next}; COMMIT`)
    else {
      step(db)
      db.exec(next)
    }
  }
}

/** Upgrades layout 3, which has a row for each request, day by day, so that the write-ahead log need not hold all days. */
function packDays(db: DatabaseSync): void {
  for (const { day } of db.prepare('SELECT day FROM days').all()) {
    const table = dayTable(Number(day))
    // The table was packed by an earlier, interrupted start.
    if (db.prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = 'records'").get(table)) continue
    db.exec(`BEGIN IMMEDIATE; ALTER TABLE ${table} RENAME TO single; ${createDay(Number(day))}`)
    packRequests(db, 'single', table)
    db.exec('DROP TABLE single; COMMIT; PRAGMA wal_checkpoint(TRUNCATE)')
  }
}

/** Uid in the lines of a row, which has the number of its tunnel instead. */
const NO_UID = ''

type Row = Readonly<Record<string, unknown>>

interface Chunk {
  readonly tunnel: number
  readonly id: Uint8Array
  readonly texts: Uint8Array[]
  length: number
}

/** Moves a day's requests from a table with a row for each to a table with chunks (chunks.ts). */
function packRequests(db: DatabaseSync, from: string, to: string): void {
  const insert = db.prepare(`INSERT INTO ${to} (tunnel, id, records) VALUES (?, ?, CAST(? AS TEXT))`)
  const put = ({ tunnel, id, texts }: Chunk) => insert.run(tunnel, id, Buffer.concat(texts))
  const lines = new RequestLines(NO_UID)
  let chunk: Chunk | undefined
  // Reads one row at a time: a day may exceed the memory.
  for (const row of db.prepare(`SELECT * FROM ${from} ORDER BY tunnel, id`).iterate()) {
    const [tunnel, id] = [row.tunnel as number, row.id as Uint8Array]
    lines.add(recordOf(row))
    const text = lines.take()
    const joins = chunk?.tunnel === tunnel && periodOf(chunk.id) === periodOf(id) && chunk.length + text.length <= ROW_LENGTH
    if (!chunk || !joins) {
      if (chunk) put(chunk)
      chunk = { tunnel, id, texts: [], length: 0 }
    }
    chunk.texts.push(text)
    chunk.length += text.length
  }
  if (chunk) put(chunk)
}

const periodOf = (id: Uint8Array): number => Math.floor(timeOfId(id) / CHUNK_MS)

function recordOf(row: Row): RequestRecord {
  return {
    id: idOfBytes(row.id as Uint8Array),
    tunnel: NO_UID,
    at: row.at as number,
    method: row.method as string,
    path: row.path as string,
    status: row.status as number,
    durationMs: row.ms as number,
    bytesIn: row.bytes_in as number,
    bytesOut: row.bytes_out as number,
    sourceIp: row.ip as string,
    origin: row.edge === 1 ? 'edge' : 'backend',
    reason: row.reason as string | null,
    protocol: row.h2 === 1 ? 'h2' : 'http/1.1',
  }
}
