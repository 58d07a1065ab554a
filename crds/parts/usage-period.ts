import { z } from 'zod'
import { UTC_RULE } from '../kind.ts'

/** Maximum number of periods that a database keeps. */
export const USAGE_PERIODS_MAX = 100

/** Period in which a database had the same plan, storage and size of backups. It ends where the next one begins. Usage is computed from periods. */
export const UsagePeriod = z.object({
  from: z.iso.datetime(UTC_RULE).max(30).describe('Begin of the period.'),
  plan: z.string().max(63).describe('Name of the Plan: the billable item of its hours.'),
  storageGiB: z.int().min(0).describe('Storage in GiB.'),
  storageItem: z
    .string()
    .max(63)
    .optional()
    .describe('Id of the billable item of the storage. Absent: the plan does not bill it.'),
  backupMiB: z.int().min(0).optional().describe('Backups in the repository in MiB, rounded up.'),
  backupItem: z
    .string()
    .max(63)
    .optional()
    .describe('Id of the billable item of the backups. Absent: there are none, or the plan does not bill them.'),
})
export type UsagePeriod = z.output<typeof UsagePeriod>

export const UsagePeriods = z
  .array(UsagePeriod)
  .max(USAGE_PERIODS_MAX)
  .describe('Periods of the plans that were in force, oldest first. Usage is computed from them.')
