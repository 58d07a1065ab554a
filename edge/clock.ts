// The global `performance` is a getter, as `Buffer` is: see own-bytes.ts.
import { performance } from 'node:perf_hooks'

/** Clocks of an edge. */
export interface EdgeClock {
  /** Monotonic time in milliseconds, for deadlines, ages and durations. Changes of the machine's clock do not affect it. */
  readonly now: () => number
  /** Milliseconds since the epoch by the machine's clock, for dates that people read and for expiry. */
  readonly date: () => number
}

export const systemClock: EdgeClock = { now: () => performance.now(), date: () => Date.now() }
