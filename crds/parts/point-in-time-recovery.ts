import { z } from 'zod'
import { UTC_RULE } from '../kind.ts'

export const RETENTION_DAYS = { min: 1, max: 35 } as const
export const RetentionDays = z
  .int()
  .min(RETENTION_DAYS.min)
  .max(RETENTION_DAYS.max)
  .describe('Days for which any moment can be restored: 1 to 35.')

/** Time in a spec, in UTC. */
const Time = z.iso.datetime(UTC_RULE).max(32)

/** Add-on of a DedicatedDatabase: point-in-time recovery. */
export const PointInTimeRecovery = z.object({ retentionDays: RetentionDays })

/** Database and moment from which a new database is restored. */
export const RestoreFrom = z.object({
  databaseId: z
    .uuid('must be the id (a UUID) of a database')
    .max(36)
    .describe('Uid of a DedicatedDatabase, which may be deleted when its backups are kept.'),
  time: Time.describe('Moment to restore, within the restore window of that database.'),
})
export type RestoreFrom = z.output<typeof RestoreFrom>

/** Interval whose every moment can be restored, as verified in the repository. */
export const RestoreWindow = z.object({
  earliest: z.string().max(32).describe('First moment that can be restored, RFC 3339 UTC.'),
  latest: z.string().max(32).describe('Last moment that can be restored, RFC 3339 UTC.'),
})
export type RestoreWindow = z.output<typeof RestoreWindow>
