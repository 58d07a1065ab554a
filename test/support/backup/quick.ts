import type { Schedule } from '../../../backup/context.ts'

/** Uid of the database in tests. */
export const PREFIX = 'database-1'

/** Schedule that tests have the patience for; no drills. */
export const QUICK: Partial<Schedule> = {
  ...{ shipMs: 20, markMs: 200, orderMs: 50, stateMs: 1_000, retryMs: 100, drillMs: Infinity },
}

/** Limit of a wait: a loaded machine takes many times as long as an idle one. */
export const PATIENCE = { timeout: 120_000 }
/** Limit of a test with servers of its own, several backups and restores. */
export const SLOW = { timeout: 400_000 }
