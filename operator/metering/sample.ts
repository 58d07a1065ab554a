import type { DatabaseArchive } from '../../crds/database-archive.ts'
import type { DatabaseSample } from '../../journal/databases.ts'
import type { Measured } from '../engines/engine.ts'

/** Measured values with the time at which they were measured, in milliseconds since the epoch. */
export interface Measurement {
  readonly at: number
  readonly measured: Measured
  /** Backups of the database; undefined for a database without them. */
  readonly archive?: DatabaseArchive | undefined
}

/** Minimum time between two measurements from which rates are computed, in milliseconds. */
const SPAN_MIN_MS = 500

/**
 * Returns the sample of a measurement. Rates are those since the measurement before. They are null for the first measurement, within 500 ms
 * of the one before, and after a restart of the server, which resets its counters. Pure.
 */
export function sampleOf({ at, measured, archive }: Measurement, before: Measurement | undefined): DatabaseSample {
  const { connections, sizeBytes } = measured
  const earlier = before && isContinued(before, { at, measured }) ? before : undefined
  return {
    at,
    connections,
    sizeBytes,
    backupAgeSeconds: backupAge(archive, at),
    transactionsPerSecond: earlier ? rate(measured.transactions - earlier.measured.transactions, at - earlier.at) : null,
    cacheHitRatio: earlier ? hitRatio(measured.pages, earlier.measured.pages) : null,
    slowStatements: slowOf(measured.slow, earlier?.measured.slow),
  }
}

/** Whether rates can be computed: the server has not restarted in between, and enough time has passed. */
function isContinued(before: Measurement, now: Measurement): boolean {
  const [a, b] = [before.measured, now.measured]
  return now.at - before.at >= SPAN_MIN_MS && b.transactions >= a.transactions && b.pages.reads >= a.pages.reads
}

const rate = (count: number, ms: number): number => Math.round((count * 1_000_000) / ms) / 1_000

/** Returns the share of the page reads between two measurements that the cache served; null without a page read. */
function hitRatio(now: Measured['pages'], before: Measured['pages']): number | null {
  const reads = now.reads - before.reads
  if (reads <= 0) return null
  const share = 1 - (now.misses - before.misses) / reads
  return Math.round(Math.min(1, Math.max(0, share)) * 10_000) / 10_000
}

function slowOf(now: Measured['slow'], before: Measured['slow'] | undefined): number | null {
  if ('running' in now) return now.running
  return before && 'total' in before ? Math.max(0, now.total - before.total) : null
}

/** Returns the seconds since the end of the last backup that succeeded; null without one. */
export function backupAge(archive: DatabaseArchive | undefined, at: number): number | null {
  const ends = (archive?.status?.backups ?? []).flatMap(({ status, finishedAt }) =>
    status === 'succeeded' && finishedAt !== undefined ? [Date.parse(finishedAt)] : [],
  )
  return ends.length === 0 ? null : Math.max(0, Math.round((at - Math.max(...ends)) / 1_000))
}
