import { createLogLimit } from '../log-limit.ts'

/** What is asked of the disk: to write, to sync, and, on its way to the journal, to be read. */
export type DiskTask = 'write' | 'sync' | 'ship'

export interface DiskHealthDeps {
  readonly directory: string
  readonly log: { warn(details: object, message: string): void; info(details: object, message: string): void }
  readonly now?: () => number
}

/** Whether the disk of a spool does what it is asked. */
export interface DiskHealth {
  fails(task: DiskTask, error: unknown): void
  works(task: DiskTask): void
  readonly failing: boolean
}

const LOG_MS = 60_000

/** Says that the disk fails, and that it works again, each at most once a minute however often that changes. */
export function createDiskHealth({ directory, log, now }: DiskHealthDeps): DiskHealth {
  const failing = new Set<DiskTask>()
  const limit = createLogLimit(LOG_MS, now)
  let told = false

  return {
    get failing() {
      return failing.size > 0
    },
    fails(task, error) {
      failing.add(task)
      if (told) return
      limit(() => {
        told = true
        log.warn({ err: error, directory, task }, 'the disk of the journal’s spool fails; it is tried again')
      })
    },
    works(task) {
      failing.delete(task)
      if (failing.size > 0 || !told) return
      told = false
      log.info({ directory }, 'the disk of the journal’s spool works again')
    },
  }
}
