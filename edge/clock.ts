// The global is a getter, as that of Buffer: see own-bytes.ts.
import { performance } from 'node:perf_hooks'

/** What an edge tells the time by. */
export interface EdgeClock {
  /** Milliseconds since some moment, for deadlines, ages and durations: it goes on evenly, however the machine's clock is set. */
  readonly now: () => number
  /** Milliseconds since the epoch, as the machine's clock says: for what people read, and what ends at a date. */
  readonly date: () => number
}

export const systemClock: EdgeClock = { now: () => performance.now(), date: () => Date.now() }
