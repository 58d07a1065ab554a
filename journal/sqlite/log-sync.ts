import { open } from 'node:fs/promises'

/** Makes what was committed durable, from outside the thread that writes: an fsync holds up no other commit. */
export interface LogSync {
  /** Resolves when all that was committed before the call is on the disk. Calls that wait share one fsync. */
  readonly sync: () => Promise<void>
}

/**
 * Of the file at `path`. A commit in WAL mode is whole once the log is on the disk, which is what `synchronous = FULL` adds to NORMAL
 * (https://www.sqlite.org/pragma.html#pragma_synchronous): here it is done by a descriptor of our own. What a checkpoint has moved into
 * the file meanwhile was synced by SQLite. There are no locks on the log that closing the descriptor would give back.
 */
export function createLogSync(path: string): LogSync {
  let current: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined

  async function after(before: Promise<void>): Promise<void> {
    // Its failure is that of those who waited for it.
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
    // The last connection was closed, as when a thread died: it brought the whole log into the file, and synced that.
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}
