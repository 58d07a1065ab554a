import type { Clock } from '../../shared/timers.ts'
import type { EdgeClock } from '../../edge/clock.ts'

/** Clock that stands still until a test advances it. */
export interface VirtualClock extends Clock {
  /** Advances the time, fires due timers in order, and lets the consequences of each settle first. */
  advance(ms: number): Promise<void>
  /** Number of active timers. */
  pending(): number
}

/** Creates a clock with timers, which starts at 0. */
export function createVirtualClock(): VirtualClock {
  let time = 0
  let serial = 0
  const timers = new Map<number, { readonly due: number; readonly fire: () => void }>()

  function nextDue(limit: number) {
    const due = [...timers].filter(([, timer]) => timer.due <= limit)
    return due.sort(([idA, a], [idB, b]) => a.due - b.due || idA - idB)[0]
  }

  return {
    now: () => time,
    after(ms, fire) {
      serial += 1
      const id = serial
      timers.set(id, { due: time + Math.max(0, ms), fire })
      return () => {
        timers.delete(id)
      }
    },
    async advance(ms) {
      const end = time + ms
      await settle()
      for (let next = nextDue(end); next; next = nextDue(end)) {
        const [id, { due, fire }] = next
        time = Math.max(time, due)
        timers.delete(id)
        fire()
        await settle()
      }
      time = end
    },
    pending: () => timers.size,
  }
}

/** Lets all promises settle that wait for neither a timer nor I/O. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Clock that stands still at its creation time until a test changes it. */
export interface SettableClock extends EdgeClock {
  /** Advances the time. */
  pass(ms: number): void
  /** Sets the wall clock; no time passes. */
  step(ms: number): void
  /** Number of times that it was read. */
  readonly reads: number
}

/** Creates a clock without timers, with the wall clock of this machine. */
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
