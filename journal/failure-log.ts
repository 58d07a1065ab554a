interface Logger {
  warn(details: object, message: string): void
  info(details: object, message: string): void
}

/**
 * Logs the first of a row of failed writes, and the first write that succeeds after them: a full disk must not fill the log too.
 */
export interface FailureLog {
  readonly failed: (error: unknown) => void
  readonly succeeded: () => void
}

export function createFailureLog(log: Logger, path: string): FailureLog {
  let failing = false
  return {
    failed(error) {
      if (!failing) log.warn({ err: error, path }, 'journal cannot be written; retrying')
      failing = true
    },
    succeeded() {
      if (failing) log.info({ path }, 'journal can be written again')
      failing = false
    },
  }
}

/**
 * Limits a log line to one every `ms` milliseconds; the first one is written at once. A failure that lasts must not fill the log.
 */
export function createLogLimit(ms: number, now: () => number = () => performance.now()): (writeLine: () => void) => void {
  let last = -Infinity
  return function limited(writeLine) {
    if (now() - last < ms) return
    last = now()
    writeLine()
  }
}

/** Operation on the disk: to write, to sync, or to read records on their way to the journal. */
export type DiskTask = 'write' | 'sync' | 'ship'

interface DiskHealthDeps {
  readonly directory: string
  readonly log: Logger
  readonly now?: () => number
}

/** State of a spool's disk: the operations that fail. */
export interface DiskHealth {
  failed(task: DiskTask, error: unknown): void
  succeeded(task: DiskTask): void
  readonly failing: boolean
}

const LOG_MS = 60_000

/** Creates the state of a disk. Logs that the disk fails, and that it works again, each at most once a minute however often that changes. */
export function createDiskHealth({ directory, log, now }: DiskHealthDeps): DiskHealth {
  const failing = new Set<DiskTask>()
  const limit = createLogLimit(LOG_MS, now)
  let isLogged = false

  return {
    get failing() {
      return failing.size > 0
    },
    failed(task, error) {
      failing.add(task)
      if (isLogged) return
      limit(() => {
        isLogged = true
        log.warn({ err: error, directory, task }, 'disk of the journal spool fails; retrying')
      })
    },
    succeeded(task) {
      failing.delete(task)
      if (failing.size > 0 || !isLogged) return
      isLogged = false
      log.info({ directory }, 'disk of the journal spool works again')
    },
  }
}
