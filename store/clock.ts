/** Time, as far as queues and caches need it, so that tests can bring their own. */
export interface Clock {
  /** Milliseconds since some fixed moment; never goes back. */
  now(): number
  /** Calls `fire` once, no earlier than `ms` from now. Returns how to prevent that. */
  after(ms: number, fire: () => void): () => void
}

/** A longer timer of Node fires at once (2^31 - 1 ms, some 24.8 days). */
const LONGEST_TIMER_MS = 2_147_483_647

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
