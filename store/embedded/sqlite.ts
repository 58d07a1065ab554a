import { closeSync, existsSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { MooringError } from '../../shared/errors.ts'
import type { Batch, Contents, Row } from './messages.ts'

/** Layout of the file; a file of a newer one is refused rather than misread. */
const LAYOUT = 1
/** After about this many bytes in the write-ahead log it is copied back into the file. */
const CHECKPOINT_BYTES = 4 * 1024 * 1024
const PAGE_BYTES = 4096

const TABLES = `
  CREATE TABLE IF NOT EXISTS objects (
    kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (kind, namespace, name)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
`

/** The file itself. All calls block until the disk has answered, so this lives in a worker thread. */
export interface SqliteFile {
  read(): Contents
  /** All or nothing; on disk (fsync) when it returns. A failed one leaves the file usable. */
  commit(batch: Batch): void
  /** Brings a long write-ahead log back into the file. Never throws: a full disk only puts it off. */
  tidy(): void
  close(): void
}

/**
 * An empty file that its owner alone can read, if there is none. One that is there is not touched: closing it would give
 * back the locks that another connection of this process has on it (fcntl, POSIX).
 */
function make(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

/**
 * Opens or makes the file, readable by its owner alone. The exclusive lock is held until `close` or the end of the process.
 * @throws the errors of node:sqlite; errcode 5 (SQLITE_BUSY) when another connection has it open
 */
export function openSqlite(path: string): SqliteFile {
  make(path)
  const db = new DatabaseSync(path, { timeout: 0 })
  // EXCLUSIVE comes before WAL: then no shared memory is needed and the lock is taken at once. Checkpoints are run by
  // `tidy`, after the answer, so that no writer waits for one.
  db.exec(`PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${2 * CHECKPOINT_BYTES}; PRAGMA temp_store = MEMORY;`)
  const layout = Number(db.prepare('PRAGMA user_version').get()?.user_version)
  if (layout > LAYOUT) throw new MooringError('newer_layout', `the state in ${path} was written by a newer version`)
  // Only once: opening what is there must work on a full disk too.
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
        // A log that could not grow can be written from its start again once it is copied back.
        logged = CHECKPOINT_BYTES
        throw error
      }
      logged += batch.puts.reduce((sum, row) => sum + row.body.length + PAGE_BYTES, (batch.removes.length + 2) * PAGE_BYTES)
    },
    tidy() {
      if (logged < CHECKPOINT_BYTES) return
      try {
        db.exec('PRAGMA wal_checkpoint(PASSIVE)')
        logged = 0
      } catch {
        // No room to grow the file: the log keeps everything, and the next commit tries again.
      }
    },
    close: () => db.close(),
  }
}
