/**
 * Limits a log line to one every `ms` milliseconds; the first one is written at once. A failure that lasts must not fill the log.
 */
export function createLogLimit(ms: number, now: () => number = () => performance.now()): (writeLine: () => void) => void {
  let last = -Infinity
  return function limited(writeLine) {
    if (now() - last < ms) return
    last = now()
    writeLine()
  }
}
