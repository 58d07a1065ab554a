import { pause } from '../shared/timers.ts'
import type { BackupClock } from './clock.ts'

export interface LoopDeps {
  readonly clock: BackupClock
  readonly everyMs: number
  readonly signal: AbortSignal
  /** Must not throw: it reports its own failures. */
  readonly run: () => Promise<void>
}

export interface Loop {
  /** Runs now; during a run, once more after it. */
  poke(): void
  /** Resolves after the signal has aborted and the last run has ended. */
  readonly ended: Promise<void>
}

/** Calls `run` at once and then again after each `everyMs`, one call at a time. */
export function createLoop({ clock, everyMs, signal, run }: LoopDeps): Loop {
  let waiting = new AbortController()

  async function repeat(): Promise<void> {
    while (!signal.aborted) {
      waiting = new AbortController()
      const poked = waiting.signal
      await run()
      await pause(clock, everyMs, AbortSignal.any([signal, poked]))
    }
  }
  return { poke: () => waiting.abort(), ended: repeat() }
}
