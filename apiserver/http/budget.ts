/**
 * Runs `wait` with a signal that aborts after `ms`.
 * @returns undefined when the time was up first; whatever else `wait` throws passes through
 */
export async function withinBudget<T extends object>(
  ms: number,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const controller = new AbortController()
  const timeUp = new Error('the time for this wait is up')
  const timer = setTimeout(() => controller.abort(timeUp), ms)
  try {
    return await wait(controller.signal)
  } catch (error) {
    if (error === timeUp) return undefined
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** The first of several waits that ends, however it ends; the others are told to stop by the signal that each is given. */
export async function firstOf<T>(signal: AbortSignal, waits: readonly ((signal: AbortSignal) => Promise<T>)[]): Promise<T> {
  const over = new AbortController()
  const either = AbortSignal.any([signal, over.signal])
  try {
    return await Promise.race(waits.map((wait) => wait(either)))
  } finally {
    over.abort()
  }
}
