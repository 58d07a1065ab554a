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
