import type { Clock } from '../../store/clock.ts'

/** A clock that stands still until told to move. */
export interface VirtualClock extends Clock {
  /** Moves time on, firing what falls due in order and letting all that follows from each settle first. */
  advance(ms: number): Promise<void>
  /** Timers that are set. */
  pending(): number
}

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

/** Lets every promise that can go on without a timer or I/O do so. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
