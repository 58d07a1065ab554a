/**
 * Runs `wait` with a signal that aborts after `ms`. Other errors of `wait` are thrown.
 * @returns undefined when the time ran out first
 */
export async function withinBudget<T extends object>(
  ms: number,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const controller = new AbortController()
  const timeout = new Error('the time budget is used up')
  const timer = setTimeout(() => controller.abort(timeout), ms)
  try {
    return await wait(controller.signal)
  } catch (error) {
    if (error === timeout) return undefined
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** Settles as the first of several waits does, then aborts the signal that the other waits got. */
export async function firstOf<T>(signal: AbortSignal, waits: readonly ((signal: AbortSignal) => Promise<T>)[]): Promise<T> {
  const settled = new AbortController()
  const either = AbortSignal.any([signal, settled.signal])
  try {
    return await Promise.race(waits.map((wait) => wait(either)))
  } finally {
    settled.abort()
  }
}

/** Rejects with the reason of the signal when it aborts; never resolves. For a race with a promise that ignores the signal. */
export function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}
