import type { EdgeClock } from '../../../edge/clock.ts'

/** Clock that stands still at its creation time until a test changes it. */
export interface SettableClock extends EdgeClock {
  /** Advances the time. */
  pass(ms: number): void
  /** Sets the wall clock; no time passes. */
  step(ms: number): void
  /** Number of times that it was read. */
  readonly reads: number
}

export function settableClock(): SettableClock {
  let [now, date, reads] = [1_000, Date.now(), 0]
  return {
    now() {
      reads += 1
      return now
    },
    date() {
      reads += 1
      return date
    },
    pass(ms) {
      now += ms
      date += ms
    },
    step(ms) {
      date += ms
    },
    get reads() {
      return reads
    },
  }
}
