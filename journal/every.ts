/** Does `act` every `ms`, never twice at once, without keeping the process alive. Dispose of it to stop; what runs then is awaited. */
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
