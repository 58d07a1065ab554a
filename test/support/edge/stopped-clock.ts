import { onTestFinished, vi } from 'vitest'

/** Monotonic clock of this process that stands still. */
export interface StoppedClock {
  /** Advances `performance.now()`. */
  pass(ms: number): void
}

/**
 * Stops `performance.now()`, from which an edge in this process reads its deadlines, until the test ends. Timers fire at their real
 * times, so that the edge checks its deadlines as often as ever.
 */
export function stoppedClock(): StoppedClock {
  let now = performance.now()
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now)
  onTestFinished(() => {
    spy.mockRestore()
  })
  return { pass: (ms) => void (now += ms) }
}
