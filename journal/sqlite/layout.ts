import { closeSync, existsSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { MooringError } from '../../shared/errors.ts'
import { packRequests } from './pack-requests.ts'

/** Layout of the file; a file of a newer one is refused rather than misread. */
const LAYOUT = 6
const LOG_BYTES = 64 * 1024 * 1024
/** The one who brings the log back into the file holds up the one who writes, and he it, for no longer than a disk takes. */
const BUSY_MS = 10_000

export const DAY_MS = 86_400_000
export const MINUTE_MS = 60_000

/**
 * Rows are kept by tunnel, then id, in the order that they are read in; a request is in the table of the day of its id, which is dropped
 * whole, and shares a row there with others of its batch (chunks.ts). `minutes` sums requests up by the minute of their id (`ms`: the response
 * times of the backend alone), and says of each minute which times it holds; `client_minutes` has the addresses with most of them, `client_hours` those of hours that are over.
 * `connected_at` is when a tunnel's last client came.
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
`

/** From layout 1, whose only edge was that of the process. */
const NAMES_EDGES = "ALTER TABLE connections ADD COLUMN edge TEXT NOT NULL DEFAULT 'embedded';"
/** From layout 2, whose entries did not say which generation they led to. */
const NAMES_GENERATIONS = `
  ALTER TABLE audit ADD COLUMN generation INTEGER;
  CREATE INDEX audit_by_resource ON audit (resource, generation, action);`
/** From layout 4, whose entries did not have the hostname of their tunnel. */
const NAMES_HOSTNAMES = `
  ALTER TABLE audit ADD COLUMN hostname TEXT;
  CREATE INDEX audit_by_hostname ON audit (hostname) WHERE hostname IS NOT NULL;`
/**
 * From layout 5, whose `ms` included the answers of the edge. Their part is not known any more: each answer of a minute is taken to have lasted as long as
 * the others.
 */
const BACKEND_TIMES = 'UPDATE minutes SET ms = ms * (requests - edge) / requests WHERE edge > 0;'

/** Each makes the next layout out of the one before; the first is of layout 1. SQL is one transaction; a function may be interrupted and runs again. */
const STEPS: readonly (string | ((db: DatabaseSync) => void))[] = [
  NAMES_EDGES,
  NAMES_GENERATIONS,
  packDays,
  NAMES_HOSTNAMES,
  BACKEND_TIMES,
]

export const dayTable = (day: number): string => `requests_${day}`

/** From layout 3, which had a row for each request: one day after the other, so that the log need not hold them all. */
function packDays(db: DatabaseSync): void {
  for (const { day } of db.prepare('SELECT day FROM days').all()) {
    const table = dayTable(Number(day))
    // It was packed before a start that did not come to its end.
    if (db.prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = 'records'").get(table)) continue
    db.exec(`BEGIN IMMEDIATE; ALTER TABLE ${table} RENAME TO single; ${createDay(Number(day))}`)
    packRequests(db, 'single', table)
    db.exec('DROP TABLE single; COMMIT; PRAGMA wal_checkpoint(TRUNCATE)')
  }
}

/** `id`: the lowest of those in `records`, which is text as `rowsOfTunnel` of request-text.ts reads it. */
const createDay = (day: number): string =>
  `CREATE TABLE ${dayTable(day)} (tunnel INTEGER NOT NULL, id BLOB NOT NULL, records TEXT NOT NULL, PRIMARY KEY (tunnel, id)) WITHOUT ROWID`

/** SQL that makes the table of a day. */
export const makeDay = (day: number): string => `${createDay(day)}; INSERT INTO days (day) VALUES (${day})`

/**
 * Opens or makes the file, readable by its owner alone, for the one connection that writes. A commit reaches the system, so that it
 * outlives this process; whoever promises more syncs the log. Nothing is checkpointed here: see reader-worker.ts.
 * @throws MooringError `newer_layout`; the errors of node:sqlite
 */
export function openForWriting(path: string): DatabaseSync {
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  const db = new DatabaseSync(path, { timeout: BUSY_MS })
  try {
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;
      PRAGMA journal_size_limit = ${LOG_BYTES}; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384`)
    layOut(db, path)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Makes the tables, or brings those of an earlier layout into this one. */
function layOut(db: DatabaseSync, path: string): void {
  const layout = Number(db.prepare('PRAGMA user_version').get()?.user_version)
  if (layout > LAYOUT) throw new MooringError('newer_layout', `the journal in ${path} was written by a newer version`)
  if (layout === 0) {
    db.exec(`BEGIN IMMEDIATE; ${TABLES} PRAGMA user_version = ${LAYOUT}; COMMIT`)
    // Once the log was synced by SQLite itself, its name in the directory is durable too.
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

/** Opens the file that {@link openForWriting} made, for reads and checkpoints. */
export function openForReading(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: BUSY_MS })
  db.exec(`PRAGMA query_only = ON; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${LOG_BYTES};
    PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768`)
  return db
}
