import type { Logger } from 'pino'
import { type Backoff, backoffMs } from '../shared/timers.ts'

/**
 * Maximum number of parallel fetches of a queue: a start must not flood the API, and must load ten thousand objects in reasonable time.
 */
const PARALLEL = 4

export interface FetchQueueDeps<T> {
  /**
   * Fetches one key. `isLatest` returns false once a later task has replaced this one, or the key was dropped: the result does not count then.
   * @returns false when the fetch must be repeated, as after an error
   */
  readonly fetch: (key: string, task: T, isLatest: () => boolean) => Promise<boolean>
  readonly retry: Backoff
  /** What is fetched, for the log. */
  readonly what: string
  readonly log: Pick<Logger, 'warn'>
}

/** Fetches from the API in the background. Each key has one task, and its fetch is repeated with a back-off until it is done. */
export interface FetchQueue<T> extends Disposable {
  /** Sets the task of a key, in place of an earlier one. */
  put(key: string, task: T): void
  /** Returns the task of a key whose fetch is not done. */
  get(key: string): T | undefined
  drop(key: string): void
  /** Resolves when all fetches are done, after `ms` milliseconds at the latest. */
  idle(ms: number): Promise<void>
}

interface Entry<T> {
  readonly task: T
  readonly failures: number
}

export function createFetchQueue<T>({ fetch, retry, what, log }: FetchQueueDeps<T>): FetchQueue<T> {
  /** Fetches to do, in progress, or waiting for their next attempt. */
  const entries = new Map<string, Entry<T>>()
  /** Keys of fetches to do, the oldest first. */
  const due = new Set<string>()
  const retries = new Map<string, NodeJS.Timeout>()
  const waiting = new Set<() => void>()
  let working = 0
  let disposed = false

  function clear(key: string): void {
    clearTimeout(retries.get(key))
    retries.delete(key)
    due.delete(key)
    entries.delete(key)
  }

  function begin(key: string, entry: Entry<T>): void {
    clear(key)
    entries.set(key, entry)
    due.add(key)
    work()
  }

  function work(): void {
    for (const key of due) {
      const entry = entries.get(key)
      if (!entry || working === PARALLEL || disposed) return
      due.delete(key)
      working += 1
      void run(key, entry).finally(() => {
        working -= 1
        work()
      })
    }
  }

  async function run(key: string, entry: Entry<T>): Promise<void> {
    const isLatest = () => !disposed && entries.get(key) === entry
    const isDone = await attempt(key, entry.task, isLatest)
    if (!isLatest()) return
    if (isDone) {
      finish(key)
      return
    }
    const failures = entry.failures + 1
    const again = () => begin(key, { task: entry.task, failures })
    retries.set(key, setTimeout(again, backoffMs(retry, failures, Math.random)).unref())
  }

  async function attempt(key: string, task: T, isLatest: () => boolean): Promise<boolean> {
    try {
      return await fetch(key, task, isLatest)
    } catch (error) {
      log.warn({ err: error }, `fetching ${what} failed; retrying`)
      return false
    }
  }

  function finish(key: string): void {
    clear(key)
    if (entries.size === 0) for (const done of waiting) done()
  }

  return {
    put: (key, task) => begin(key, { task, failures: 0 }),
    get: (key) => entries.get(key)?.task,
    drop: finish,
    async idle(ms) {
      if (entries.size === 0) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(done, ms)
        function done(): void {
          clearTimeout(timer)
          waiting.delete(done)
          resolve()
        }
        waiting.add(done)
      })
    },
    [Symbol.dispose]() {
      disposed = true
      for (const timer of retries.values()) clearTimeout(timer)
    },
  }
}
