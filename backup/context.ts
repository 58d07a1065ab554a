import type { Logger } from 'pino'
import type { Order } from './agent-state.ts'
import type { BackupClock } from './clock.ts'
import type { Archiving } from './postgresql/archiving/archiving.ts'
import type { Catalog } from './postgresql/catalog/catalog.ts'
import type { PostgresqlFiles } from './postgresql/server.ts'
import type { Problems } from './problems.ts'
import type { Memory } from './report.ts'
import type { Repository } from './repository/port.ts'

/** Intervals of an agent in milliseconds, and its bounds. */
export interface Schedule {
  /** Interval of polls of the spool. */
  readonly shipMs: number
  /** Interval at which the current segment of WAL is closed, if anything was committed. With the time of shipping, it bounds what a crash loses. */
  readonly markMs: number
  /** Interval of scheduled base backups. */
  readonly backupMs: number
  /** Interval of restore drills; Infinity for none. */
  readonly drillMs: number
  /** Maximum time of a drill: a function that the planner calls may run for ever. */
  readonly drillLimitMs: number
  /** Delay after the first failure of a backup or drill; doubled for each further one, at most an hour. */
  readonly retryMs: number
  /** Interval of reads of `order.json`, and of checks which jobs are due. */
  readonly orderMs: number
  /** Maximum age of `state.json`. */
  readonly stateMs: number
  /** Minimum interval of full listings of the repository, which find objects that other programs removed. Longer with many objects ({@link listEveryMs}). */
  readonly listMs: number
  /** Interval of removals of expired backups. */
  readonly expireMs: number
  /** Maximum rate of reads of a base backup. */
  readonly bytesPerSecond: number
}

export const SCHEDULE: Schedule = {
  shipMs: 1_000,
  markMs: 20_000,
  backupMs: 24 * 3_600_000,
  drillMs: 7 * 24 * 3_600_000,
  drillLimitMs: 12 * 3_600_000,
  retryMs: 30_000,
  orderMs: 10_000,
  stateMs: 30_000,
  listMs: 60_000,
  expireMs: 3_600_000,
  bytesPerSecond: 100 * 1024 * 1024,
}

/** Time in ms for each object that a listing returns: a bucket answers a request, which costs money, for each 1,000 objects. */
const MS_PER_OBJECT = 10
const MAX_LIST_MS = 3_600_000

/** Returns the interval of full listings of a repository with so many objects of the database: from a minute (6,000) to an hour. */
export function listEveryMs(objects: number, { listMs }: Pick<Schedule, 'listMs'>): number {
  return Math.max(listMs, Math.min(objects * MS_PER_OBJECT, MAX_LIST_MS))
}

/** Dependencies and state that the jobs of one agent share. */
export interface Context {
  readonly repository: Repository
  /** Uid of the database, the first part of all keys. */
  readonly prefix: string
  readonly server: PostgresqlFiles
  readonly clock: BackupClock
  readonly log: Logger
  readonly schedule: Schedule
  /** Aborts when the agent closes. */
  readonly signal: AbortSignal
  readonly catalog: Catalog
  readonly memory: Memory
  readonly problems: Problems
  readonly archiving: Archiving
  /** Returns the last order that was read; undefined before the first one. */
  readonly order: () => Order | undefined
  /** Schedules a report of the state. */
  readonly changed: () => void
}
