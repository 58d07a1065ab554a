import { Gauge, type Registry } from 'prom-client'
import { type DatabaseArchive, WAITING_REASONS } from '../../crds/database-archive.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf } from '../../store/conditions.ts'
import { backupAge } from './sample.ts'

export interface ArchiveMetricsDeps {
  readonly archives: Pick<Cache<typeof DatabaseArchive>, 'list'>
  readonly now: () => Date
}

/** Value of a metric and further labels; undefined when it is not known. */
type Value = { readonly value: number; readonly reason?: string } | undefined

/** Returns the seconds since a time. */
function ageOf(time: string | undefined, now: number): Value {
  return time === undefined ? undefined : { value: Math.max(0, (now - Date.parse(time)) / 1_000) }
}

function backupAgeOf(archive: DatabaseArchive, now: number): Value {
  const value = backupAge(archive, now)
  return value === null ? undefined : { value }
}

function problemOf(archive: DatabaseArchive): Value {
  const condition = conditionOf(archive, 'Ready')
  if (condition?.status !== 'False' || WAITING_REASONS.has(condition.reason)) return undefined
  return { value: 1, reason: condition.reason }
}

const METRICS: readonly (readonly [name: string, help: string, valueOf: (archive: DatabaseArchive, now: number) => Value])[] = [
  [
    'mooring_database_backup_age_seconds',
    'Age of the last backup of a dedicated database with point-in-time recovery.',
    backupAgeOf,
  ],
  [
    'mooring_database_archive_lag_seconds',
    'Age of the last moment of a dedicated database that can be restored.',
    ({ status }, now) => ageOf(status?.restoreWindow?.latest, now),
  ],
  [
    'mooring_database_verified_restore_age_seconds',
    'Time since the backups of a dedicated database were last restored on trial; absent before the first time.',
    ({ status }, now) => ageOf(status?.lastVerifiedRestore, now),
  ],
  [
    'mooring_database_restore_drill_failed',
    'Whether the last restore on trial of the backups of a dedicated database failed, 0 or 1.',
    ({ status }) => ({ value: status?.drillError === undefined ? 0 : 1 }),
  ],
  [
    'mooring_database_backup_problem',
    'Present, with the value 1, while archiving or backups of a dedicated database fail.',
    problemOf,
  ],
]

/**
 * Registers the metrics of the databases with point-in-time recovery. Kept backups of deleted databases have none. The number of time series is
 * bounded by the quotas of the namespaces.
 */
export function registerArchives(registry: Registry, { archives, now }: ArchiveMetricsDeps): void {
  for (const [name, help, valueOf] of METRICS) {
    new Gauge({
      name,
      help,
      labelNames: ['namespace', 'database', 'reason'],
      registers: [registry],
      collect() {
        this.reset()
        for (const archive of archives.list()) {
          const { namespace, database, keptUntil } = archive.spec
          const found = keptUntil === undefined ? valueOf(archive, now().getTime()) : undefined
          if (!found) continue
          const { value, ...more } = found
          this.set({ namespace, database, ...more }, value)
        }
      },
    })
  }
}
