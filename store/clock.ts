/** Time source of queues and caches; tests replace it. */
export interface Clock {
  /** Returns milliseconds of a monotonic clock. */
  now(): number
  /** Calls `fire` once, at least `ms` milliseconds from now. Returns a function that cancels the call. */
  after(ms: number, fire: () => void): () => void
}

/** Maximum delay of a Node timer (2^31 - 1 ms, 24.8 days); a longer timer fires at once. */
const LONGEST_TIMER_MS = 2_147_483_647

/** Clock of the system. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, fire) {
    const due = performance.now() + ms
    const next = () => {
      const left = due - performance.now()
      if (left <= 0) fire()
      else timer = setTimeout(next, Math.min(Math.ceil(left), LONGEST_TIMER_MS))
    }
    let timer = setTimeout(next, Math.min(Math.max(0, Math.ceil(ms)), LONGEST_TIMER_MS))
    return () => {
      clearTimeout(timer)
    }
  },
}

/** Resolves after `ms`, or as soon as `signal` aborts; never rejects. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const end = () => {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(ms, end)
    signal.addEventListener('abort', end)
  })
}
