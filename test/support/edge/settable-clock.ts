import type { EdgeClock } from '../../../edge/clock.ts'

/** A clock that stands still, from this moment, until a test moves it. */
export interface SettableClock extends EdgeClock {
  /** Time passes. */
  pass(ms: number): void
  /** Somebody sets the machine's clock: no time passes. */
  step(ms: number): void
  /** How often it was read. */
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
