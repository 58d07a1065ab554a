/**
 * Calls `tick` every `everyMs` with the time, as performance.now says it, and with how much later than that this process itself has come to
 * it: what was sent to it meanwhile is read only after, and nobody must be taken for silent for that. Dispose of it to end.
 */
export function startTicker(everyMs: number, tick: (now: number, stalledMs: number) => void): Disposable {
  let ticked = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    const stalledMs = Math.max(0, now - ticked - everyMs)
    ticked = now
    tick(now, stalledMs)
  }, everyMs)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
