/** Lets a line into the log at most once in `ms`, the first one at once: what goes on failing must not fill the log too. */
export function createLogLimit(ms: number, now: () => number = () => performance.now()): (say: () => void) => void {
  let last = -Infinity
  return function limited(say) {
    if (now() - last < ms) return
    last = now()
    say()
  }
}
