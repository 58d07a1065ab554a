import { performance } from 'node:perf_hooks'

// The global `performance` is a getter, as `Buffer` is: see memory.ts.

/** Clocks of an edge. */
export interface EdgeClock {
  /** Monotonic time in milliseconds, for deadlines, ages and durations. Changes of the machine's clock do not affect it. */
  readonly now: () => number
  /** Milliseconds since the epoch by the machine's clock, for dates that people read and for expiry. */
  readonly date: () => number
}

export const systemClock: EdgeClock = { now: () => performance.now(), date: () => Date.now() }

/**
 * Calls `tick` every `everyMs` with the time of performance.now() and the delay of this call in milliseconds. Bytes that arrived during
 * the delay are read after it, so no peer may count as silent for that time. Dispose to stop.
 */
export function startTicker(everyMs: number, tick: (now: number, stalledMs: number) => void): Disposable {
  let ticked = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    const stalledMs = Math.max(0, now - ticked - everyMs)
    ticked = now
    tick(now, stalledMs)
  }, everyMs)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
