import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Backoff, backoffMs, type Clock, systemClock } from '../../shared/timers.ts'

/** Result of the work on a key. */
export interface WorkResult {
  /** Time after which the key runs again, unless it is added earlier. */
  readonly requeueAfterMs?: number | undefined
}

export interface QueueDeps {
  /** Maximum number of keys that are worked on at once. */
  readonly concurrency: number
  /** Work on a key; a throw repeats it after a back-off. The signal aborts when the queue closes. */
  readonly work: (key: string, signal: AbortSignal) => Promise<WorkResult>
  /** Group of a key. Groups take turns, so that a group with thousands of keys does not delay the others. Default: one group. */
  readonly group?: (key: string) => string
  /** Back-off after throws, counted per key and reset by a success. Default: 50 ms to 60 s. */
  readonly backoff?: Backoff
  readonly clock?: Clock
  readonly random?: () => number
  /** Receives the number of keys that are due and wait for a worker, whenever it changes. */
  readonly onDepth?: (depth: number) => void
  /** Receives the seconds that a key was due before a worker took it. */
  readonly onLatency?: (seconds: number) => void
}

/**
 * Work queue of keys. A key waits at most once, however often it is added, and is never worked on twice at a time: a key that is added
 * during its work runs once more afterwards. Each key has one due time, the earliest requested.
 */
export interface Queue extends AsyncDisposable {
  add(key: string): void
  addAfter(key: string, ms: number): void
  /** Drops waiting keys, aborts the signal of running work, and resolves when that has ended. Later calls of `add` have no effect. */
  close(): Promise<void>
}

/** Key that waits, runs, or has failed. */
interface Entry {
  readonly key: string
  /** Time of the next run. */
  due: number | undefined
  /** `idle`: waits for its time, or only remembers failures. */
  state: 'idle' | 'ready' | 'running'
  cancelTimer: (() => void) | undefined
  failures: number
}

/** Maximum number of keys whose work ends in one turn of the event loop. */
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

  /** Whether the event loop needs a turn: work that never waits would otherwise block all other work of the process. */
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

/** Queue of items in groups: groups take turns, and each group is first in, first out. */
interface FairFifo<T> {
  push(group: string, item: T): void
  /** Removes the first item of the group whose turn it is; undefined when the queue is empty. */
  shift(): T | undefined
  clear(): void
  readonly size: number
}

function createFairFifo<T>(): FairFifo<T> {
  const groups = new Map<string, Fifo<T>>()
  const turns = createFifo<string>()
  let size = 0

  return {
    push(group, item) {
      let items = groups.get(group)
      if (!items) {
        items = createFifo()
        groups.set(group, items)
        turns.push(group)
      }
      items.push(item)
      size += 1
    },
    shift() {
      const group = turns.shift()
      if (group === undefined) return undefined
      const items = groups.get(group)
      const item = items?.shift()
      if (items?.size === 0) groups.delete(group)
      else turns.push(group)
      size -= 1
      return item
    },
    clear() {
      groups.clear()
      turns.clear()
      size = 0
    },
    get size() {
      return size
    },
  }
}

interface Fifo<T> {
  push(item: T): void
  shift(): T | undefined
  clear(): void
  readonly size: number
}

/** Array.shift moves all remaining items; here the front index advances, and the array is cut when half of it is consumed. */
function createFifo<T>(): Fifo<T> {
  let items: (T | undefined)[] = []
  let front = 0

  return {
    push(item) {
      items.push(item)
    },
    shift() {
      const item = items[front]
      if (front === items.length) return undefined
      items[front] = undefined
      front += 1
      if (front * 2 >= items.length) {
        items = items.slice(front)
        front = 0
      }
      return item
    },
    clear() {
      items = []
      front = 0
    },
    get size() {
      return items.length - front
    },
  }
}
