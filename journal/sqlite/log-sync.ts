import { open } from 'node:fs/promises'

/** Makes commits durable from outside the writing thread: an fsync does not delay other commits. */
export interface LogSync {
  /** Resolves when all commits before the call are on disk. Waiting calls share one fsync. */
  readonly sync: () => Promise<void>
}

/**
 * Creates the sync of the file at `path`. A commit in WAL mode is durable once the log is on disk. `synchronous = FULL` would
 * sync it within each commit (https://www.sqlite.org/pragma.html#pragma_synchronous); here a descriptor of our own does it.
 * SQLite itself syncs what a checkpoint moves into the file. Closing the descriptor releases no locks: SQLite holds none on the
 * log.
 */
export function createLogSync(path: string): LogSync {
  let current: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined

  async function after(before: Promise<void>): Promise<void> {
    // Its callers handle its failure.
    await Promise.allSettled([before])
    next = undefined
    current = syncFile(`${path}-wal`)
    await current
  }

  return { sync: () => (next ??= after(current)) }
}

async function syncFile(log: string): Promise<void> {
  try {
    await using file = await open(log, 'r+')
    await file.datasync()
  } catch (error) {
    // The last connection has closed, as after a crash of a thread: it moved the whole log into the file, and synced the file.
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}
