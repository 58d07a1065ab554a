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

/** Resolves when the signal aborts; at once when it has aborted before. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
