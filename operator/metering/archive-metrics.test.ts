import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import type { ArchivedBackup, DatabaseArchive } from '../../crds/database-archive.ts'
import { archiving, databaseArchive, WINDOW } from '../../test/builders/archive.ts'
import { readyCondition } from '../../test/builders/resources.ts'
import { registerArchives } from './archive-metrics.ts'

const UID = '5b0c6f0e-2f7e-4b51-8a0f-3d2a9f6c7e01'
const BACKUP: ArchivedBackup = {
  ...{ id: '20260102T000000Z-3f1c', startedAt: WINDOW.earliest, finishedAt: WINDOW.earliest },
  ...{ sizeBytes: 1, kind: 'scheduled', status: 'succeeded' },
}
const OF = '{namespace="acme--prod",database="orders"}'

async function metricsOf(archive: DatabaseArchive): Promise<readonly string[]> {
  const registry = new Registry()
  registerArchives(registry, { archives: { list: () => [archive] }, now: () => new Date('2026-01-02T03:00:30.000Z') })
  return (await registry.metrics()).split('\n').filter((line) => line.startsWith('mooring_'))
}

test('the metrics have the age of the last backup, of the last restorable moment and of the last drill', async () => {
  const status = { ...archiving, backups: [BACKUP], lastVerifiedRestore: '2026-01-02T02:00:30.000Z' }
  expect(await metricsOf(databaseArchive(UID, { status }))).toEqual([
    `mooring_database_backup_age_seconds${OF} 10830`,
    `mooring_database_archive_lag_seconds${OF} 30`,
    `mooring_database_verified_restore_age_seconds${OF} 3600`,
    `mooring_database_restore_drill_failed${OF} 0`,
  ])
})

test('the metrics have the reason of a problem, and a failed drill', async () => {
  const status = { conditions: [readyCondition('False', 'RepositoryFull')], drillError: 'no space' }
  expect(await metricsOf(databaseArchive(UID, { status }))).toEqual([
    `mooring_database_restore_drill_failed${OF} 1`,
    `mooring_database_backup_problem{namespace="acme--prod",database="orders",reason="RepositoryFull"} 1`,
  ])
})

test.each([
  { archive: 'that waits for its first backup', traits: { status: { conditions: [readyCondition('False', 'FirstBackup')] } } },
  { archive: 'of a deleted database', traits: { status: archiving, spec: { keptUntil: '2026-01-09T00:00:00Z' } } },
])('an archive $archive has no problem', async ({ traits }) => {
  expect((await metricsOf(databaseArchive(UID, traits))).join()).not.toContain('problem')
})
