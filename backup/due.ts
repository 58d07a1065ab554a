import { backoffMs } from '../shared/timers.ts'
import type { Order } from './agent-state.ts'
import type { Schedule } from './context.ts'
import { type Archived, finishOf, type Interval } from './postgresql/catalog/restorable.ts'
import type { Manifest } from './postgresql/catalog/manifest.ts'

/** Consecutive failures of one kind of job. */
export interface Failures {
  readonly count: number
  /** Time of the last one in ms. */
  readonly at: number
}

export const NO_FAILURES: Failures = { count: 0, at: 0 }

const MAX_RETRY_MS = 3_600_000

/** Whether a job that failed may be tried again. */
export function mayRetry({ count, at }: Failures, now: number, { retryMs }: Pick<Schedule, 'retryMs'>): boolean {
  return count === 0 || now - at >= backoffMs({ baseMs: retryMs, maxMs: Math.max(retryMs, MAX_RETRY_MS) }, count, () => 1)
}

export interface BackupInput {
  readonly order: Order | undefined
  readonly doneVersion: number
  readonly intervals: readonly Interval[]
  readonly wal: Archived['wal']
  readonly now: number
  readonly backupMs: number
}

/** Returns the kind of the backup that is due: `scheduled` is the first one, the first one after a gap in the log, or the daily one. */
export function dueBackup(input: BackupInput): Manifest['kind'] | undefined {
  const { order, doneVersion, intervals, now, backupMs } = input
  if (order && order.backupVersion > doneVersion) return 'requested'
  const newest = intervals.at(-1)
  const base = newest?.bases.at(-1)
  if (!newest || !base) return 'scheduled'
  return isBroken(input, newest) || now - finishOf(base) >= backupMs ? 'scheduled' : undefined
}

/** Whether the log continues behind a gap after the newest interval, without a backup from which that part can be restored. */
function isBroken({ wal, intervals }: BackupInput, newest: Interval): boolean {
  for (const [log, runs] of wal) {
    for (const { first, latest } of runs) {
      if (!latest || intervals.some(({ lastMark }) => lastMark === latest)) continue
      if (log === newest.log ? first > newest.lastMark.segment : latest.at > newest.lastMark.at) return true
    }
  }
  return false
}

/** Whether a drill is due: no drill has succeeded yet, or the last one is too old. */
export function isDrillDue(lastVerified: string | null, intervals: readonly Interval[], now: number, drillMs: number): boolean {
  if (intervals.length === 0 || drillMs === Infinity) return false
  return lastVerified === null || now - Date.parse(lastVerified) >= drillMs
}
