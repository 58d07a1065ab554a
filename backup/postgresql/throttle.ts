import { pause } from '../../shared/timers.ts'
import type { BackupClock } from '../clock.ts'

/** Returns a function that resolves when `bytes` more may be read, so that the rate stays below `bytesPerSecond`. */
export function createThrottle(
  clock: BackupClock,
  bytesPerSecond: number,
  signal: AbortSignal,
): (bytes: number) => Promise<void> {
  let free = clock.now()
  return async (bytes) => {
    const now = clock.now()
    free = Math.max(free, now - BURST_MS) + (bytes / bytesPerSecond) * 1000
    if (free > now) await pause(clock, free - now, signal)
    signal.throwIfAborted()
  }
}

/** Time whose bytes may be read at once after a pause. */
const BURST_MS = 100
