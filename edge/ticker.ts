/**
 * Calls `tick` every `everyMs` with the time of performance.now() and the delay of this call in milliseconds. Bytes that arrived during
 * the delay are read after it, so no peer may count as silent for that time. Dispose to stop.
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
