import { setTimeout as delay } from 'node:timers/promises'

/**
 * Calls `act` every `ms` milliseconds, one call at a time, without keeping the process alive. Disposing stops the calls and waits
 * for a running one.
 */
export function every(ms: number, act: () => Promise<void>): AsyncDisposable {
  let running: Promise<void> | undefined
  const timer = setInterval(() => {
    running ??= act().finally(() => {
      running = undefined
    })
  }, ms)
  timer.unref()
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await running
    },
  }
}

/**
 * Resolves after `ms` milliseconds, or as soon as `signal` aborts; never rejects. Does not keep the process alive, unlike
 * {@link pause} of a clock.
 */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal, ref: false }).catch(ignoreAbort)
}

function ignoreAbort(error: unknown): void {
  if (!(error instanceof Error && error.name === 'AbortError')) throw error
}

/** Resolves when the signal aborts; at once when it has aborted before. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Bounds of an exponential back-off, in milliseconds. */
export interface Backoff {
  readonly baseMs: number
  readonly maxMs: number
}

/**
 * Returns the delay in milliseconds after `failures` consecutive failures (1 or more): `baseMs`, doubled per further failure, at most `maxMs`.
 * The upper half of the delay is random, so that clients that failed at the same time do not retry at the same time.
 */
export function backoffMs({ baseMs, maxMs }: Backoff, failures: number, random: () => number = Math.random): number {
  const full = Math.min(maxMs, baseMs * 2 ** (failures - 1))
  return full / 2 + (full / 2) * random()
}

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
