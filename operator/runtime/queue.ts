import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Backoff, backoffMs } from '../../shared/backoff.ts'
import { type Clock, systemClock } from '../../store/clock.ts'
import { createFairFifo } from './fair-fifo.ts'

/** What came of one run of the work on a key. */
export interface WorkResult {
  /** Run it again after this time, unless something wakes it sooner. */
  readonly requeueAfterMs?: number | undefined
}

export interface QueueDeps {
  /** Keys worked on at once, at the most. */
  readonly concurrency: number
  /** The work itself; a throw means: again, after a back-off. The signal aborts when the queue closes. */
  readonly work: (key: string, signal: AbortSignal) => Promise<WorkResult>
  /** Groups take turns, so that one with thousands of keys does not keep the others waiting. All keys are one group unless given. */
  readonly group?: (key: string) => string
  /** After throws, counted by key and forgotten at the first success; 50 ms to 60 s unless given. */
  readonly backoff?: Backoff
  readonly clock?: Clock
  readonly random?: () => number
  /** Keys that are due and wait for a worker, each time that number changes. */
  readonly onDepth?: (depth: number) => void
  /** Seconds that a key was due before a worker took it. */
  readonly onLatency?: (seconds: number) => void
}

/**
 * A work queue of keys. A key waits at most once, however often it is added, and is never worked on twice at a time: one that is added
 * while it is worked on runs once more afterwards. What is due when is kept as one moment per key, the earliest that anyone asked for.
 */
export interface Queue extends AsyncDisposable {
  add(key: string): void
  addAfter(key: string, ms: number): void
  /** Drops what waits, aborts the signal of what runs, and resolves when that has ended. Nothing is started or taken in afterwards. */
  close(): Promise<void>
}

/** A key that waits, runs, or has failed. */
interface Entry {
  readonly key: string
  /** When it shall run (again). */
  due: number | undefined
  /** `idle`: waits for its time, or for nothing. */
  state: 'idle' | 'ready' | 'running'
  cancelTimer: (() => void) | undefined
  failures: number
}

/** Keys that are done in one turn of the event loop, at the most. */
const DONE_IN_TURN = 100
const DEFAULT_BACKOFF: Backoff = { baseMs: 50, maxMs: 60_000 }

export function createQueue(deps: QueueDeps): Queue {
  const { concurrency, work, group = () => '', clock = systemClock, random = Math.random } = deps
  const { backoff = DEFAULT_BACKOFF, onDepth = () => undefined, onLatency = () => undefined } = deps
  const entries = new Map<string, Entry>()
  const ready = createFairFifo<Entry>()
  const closing = new AbortController()
  const idle = Promise.withResolvers<undefined>()
  let running = 0
  let doneInTurn = 0

  function addAfter(key: string, ms: number): void {
    if (closing.signal.aborted) return
    const entry = entries.get(key) ?? { key, due: undefined, state: 'idle', cancelTimer: undefined, failures: 0 }
    entries.set(key, entry)
    const due = clock.now() + Math.max(0, ms)
    if (entry.due !== undefined && entry.due <= due) return
    entry.due = due
    if (entry.state === 'idle') schedule(entry, due)
  }

  function schedule(entry: Entry, due: number): void {
    entry.cancelTimer?.()
    entry.cancelTimer = undefined
    const wait = due - clock.now()
    if (wait > 0) {
      entry.cancelTimer = clock.after(wait, () => schedule(entry, due))
      return
    }
    entry.state = 'ready'
    ready.push(group(entry.key), entry)
    onDepth(ready.size)
    startNext()
  }

  function startNext(): void {
    while (running < concurrency && !closing.signal.aborted) {
      const entry = ready.shift()
      if (!entry) return
      onDepth(ready.size)
      void run(entry)
    }
  }

  async function run(entry: Entry): Promise<void> {
    onLatency((clock.now() - (entry.due ?? clock.now())) / 1000)
    running += 1
    entry.state = 'running'
    entry.due = undefined
    try {
      const { requeueAfterMs } = await work(entry.key, closing.signal)
      entry.failures = 0
      if (requeueAfterMs !== undefined) addAfter(entry.key, requeueAfterMs)
    } catch {
      entry.failures += 1
      addAfter(entry.key, backoffMs(backoff, entry.failures, random))
    }
    if (isTurnOver()) await nextTurn()
    running -= 1
    entry.state = 'idle'
    finish(entry)
  }

  /** Work that waits for nothing goes from key to key without a turn of the event loop, in which all others wait. */
  function isTurnOver(): boolean {
    if (doneInTurn === 0)
      setImmediate(() => {
        doneInTurn = 0
      })
    doneInTurn += 1
    return doneInTurn > DONE_IN_TURN
  }

  function finish(entry: Entry): void {
    if (closing.signal.aborted) {
      if (running === 0) idle.resolve(undefined)
      return
    }
    if (entry.due === undefined) entries.delete(entry.key)
    else schedule(entry, entry.due)
    startNext()
  }

  function close(): Promise<void> {
    if (!closing.signal.aborted) {
      closing.abort()
      for (const { cancelTimer } of entries.values()) cancelTimer?.()
      entries.clear()
      ready.clear()
      onDepth(0)
      if (running === 0) idle.resolve(undefined)
    }
    return idle.promise
  }

  return { add: (key) => addAfter(key, 0), addAfter, close, [Symbol.asyncDispose]: close }
}
