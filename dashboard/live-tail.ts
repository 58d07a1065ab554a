/** Requests that the page keeps; older ones are dropped. */
export const KEPT = 250
/** Requests that wait for the next frame; more arrive only while the page is hidden. */
const WAITING = KEPT

/**
 * Newest items of an endless stream, in bounded memory. They show in the order of their ids, newest first: two edges send the requests
 * that they have answered independently, so that a later one may arrive before an earlier one.
 */
export interface Tail<T> {
  /** Takes one item; it shows after the next `flush`. */
  push(item: T): void
  /** Moves what has arrived to the shown items, unless paused. Returns whether anything changed. */
  flush(): boolean
  /** Adds items of the log to the shown items, even while paused. */
  seed(items: readonly T[]): void
  pause(paused: boolean): void
  /** Removes all items. */
  clear(): void
  readonly shown: readonly T[]
  /** Number of items that arrived since the pause, the dropped ones included. */
  readonly missed: number
}

/** Creates a tail of items whose ids sort by time as text, as UUIDv7 do. */
export function createTail<T extends { readonly id: string }>(kept = KEPT): Tail<T> {
  let shown: readonly T[] = []
  let waiting: T[] = []
  let isPaused = false
  let missed = 0

  /** Adds items. The log and the stream may both have one, in either order. */
  function show(items: readonly T[]): void {
    const all = new Map([...items, ...shown].map((item) => [item.id, item]))
    shown = [...all.values()].toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, kept)
  }

  return {
    push(item) {
      if (isPaused) missed += 1
      waiting.push(item)
      if (waiting.length > WAITING * 2) waiting = waiting.slice(-WAITING)
    },
    flush() {
      if (isPaused || waiting.length === 0) return false
      show(waiting)
      waiting = []
      return true
    },
    seed(items) {
      show(items)
    },
    pause(paused) {
      isPaused = paused
      missed = 0
    },
    clear() {
      shown = []
      waiting = []
      missed = 0
    },
    get shown() {
      return shown
    },
    get missed() {
      return missed
    },
  }
}
