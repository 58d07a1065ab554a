import { closeSync, existsSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { MooringError } from '../../shared/errors.ts'

/** Version of the file's layout. A file of a newer layout is rejected. */
const LAYOUT = 1
/** Approximate size of the write-ahead log, in bytes, at which a checkpoint copies it into the file. */
const CHECKPOINT_BYTES = 4 * 1024 * 1024
const PAGE_BYTES = 4096

const TABLES = `
  CREATE TABLE IF NOT EXISTS objects (
    kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (kind, namespace, name)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
`

/** Object as a row of the database; `body` is its JSON. */
export interface Row {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly body: string
}

/** Contents of one transaction. `revision` is its newest revision. */
export interface Batch {
  readonly revision: number
  readonly puts: readonly Row[]
  readonly removes: readonly Omit<Row, 'body'>[]
}

/** All objects in the file, and the revision of the last transaction. */
export interface Contents {
  readonly revision: number
  readonly rows: readonly Row[]
}

/** Error of a request to the worker. `code`: `locked` (another process has the file open), `newer_layout` or `unavailable`. */
export interface Failure {
  readonly type: 'failed'
  readonly code: string
  readonly message: string
}

export type Request = { readonly type: 'commit'; readonly batch: Batch } | { readonly type: 'close' }
export type Reply =
  | { readonly type: 'opened'; readonly contents: Contents }
  | { readonly type: 'committed' }
  | { readonly type: 'closed' }
  | Failure

/** SQLite file. All calls block until the disk has responded, so they run in a worker thread. */
export interface SqliteFile {
  read(): Contents
  /** Writes all of the batch or no part of it, and returns after fsync. The file stays usable after an error. */
  commit(batch: Batch): void
  /** Copies a long write-ahead log into the file. Never throws: on a full disk the checkpoint is postponed. */
  checkpoint(): void
  close(): void
}

/**
 * Creates an empty file that only its owner can read, unless the file exists. An existing file is not opened: closing it would release
 * the locks that another connection of this process holds on it (fcntl(2)).
 */
function make(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

/**
 * Opens or creates the file, readable only by its owner. The exclusive lock is held until `close` or the end of the process.
 * @throws the errors of node:sqlite; errcode 5 (SQLITE_BUSY) when another connection has it open
 */
export function openSqlite(path: string): SqliteFile {
  make(path)
  const db = new DatabaseSync(path, { timeout: 0 })
  // EXCLUSIVE is set before WAL: then SQLite needs no shared memory and takes the lock at once. `checkpoint` runs after the reply, so
  // no writer waits for it.
  db.exec(`PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${2 * CHECKPOINT_BYTES}; PRAGMA temp_store = MEMORY;`)
  const layout = Number(db.prepare('PRAGMA user_version').get()?.user_version)
  if (layout > LAYOUT) throw new MooringError('newer_layout', `the state in ${path} was written by a newer version`)
  // Only for a new file: opening an existing file must work on a full disk.
  if (layout === 0) db.exec(`BEGIN IMMEDIATE; ${TABLES} PRAGMA user_version = ${LAYOUT}; COMMIT`)

  const put = db.prepare('INSERT OR REPLACE INTO objects (kind, namespace, name, body) VALUES (?, ?, ?, ?)')
  const remove = db.prepare('DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?')
  const count = db.prepare(`INSERT OR REPLACE INTO counters (name, value) VALUES ('revision', ?)`)
  let logged = 0

  function apply({ revision, puts, removes }: Batch): void {
    for (const { kind, namespace, name, body } of puts) put.run(kind, namespace, name, body)
    for (const { kind, namespace, name } of removes) remove.run(kind, namespace, name)
    count.run(revision)
  }

  return {
    read() {
      const revision = db.prepare(`SELECT value FROM counters WHERE name = 'revision'`).get()?.value
      const rows = db.prepare('SELECT kind, namespace, name, body FROM objects').all() as unknown as Row[]
      return { revision: Number(revision ?? 0), rows }
    },
    commit(batch) {
      db.exec('BEGIN IMMEDIATE')
      try {
        apply(batch)
        db.exec('COMMIT')
      } catch (error) {
        // SQLite itself has rolled back after some errors (disk full), but not after all.
        if (db.isTransaction) db.exec('ROLLBACK')
        // After a checkpoint, a log that could not grow is written from its start again.
        logged = CHECKPOINT_BYTES
        throw error
      }
      logged += batch.puts.reduce((sum, row) => sum + row.body.length + PAGE_BYTES, (batch.removes.length + 2) * PAGE_BYTES)
    },
    checkpoint() {
      if (logged < CHECKPOINT_BYTES) return
      try {
        db.exec('PRAGMA wal_checkpoint(PASSIVE)')
        logged = 0
      } catch {
        // The file cannot grow: the log keeps all data, and the next commit tries again.
      }
    },
    close: () => db.close(),
  }
}
