import { createLogLimit } from '../log-limit.ts'

/** Operation on the disk: to write, to sync, or to read records on their way to the journal. */
export type DiskTask = 'write' | 'sync' | 'ship'

export interface DiskHealthDeps {
  readonly directory: string
  readonly log: { warn(details: object, message: string): void; info(details: object, message: string): void }
  readonly now?: () => number
}

/** State of a spool's disk: the operations that fail. */
export interface DiskHealth {
  failed(task: DiskTask, error: unknown): void
  succeeded(task: DiskTask): void
  readonly failing: boolean
}

const LOG_MS = 60_000

/** Logs that the disk fails, and that it works again, each at most once a minute however often that changes. */
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
