import { systemClock, type Clock } from '../shared/timers.ts'

/** Time source of an agent; tests replace it. */
export interface BackupClock extends Clock {
  /** Returns milliseconds since the epoch, by the clock of this machine. */
  date(): number
}

export const systemBackupClock: BackupClock = { ...systemClock, date: () => Date.now() }
