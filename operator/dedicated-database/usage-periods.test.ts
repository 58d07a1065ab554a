import { describe, expect, test } from 'vitest'
import type { DatabaseArchive } from '../../crds/database-archive.ts'
import type { DatabaseServer } from '../../crds/database-server.ts'
import { annotations } from '../../crds/names.ts'
import type { UsagePeriod } from '../../crds/parts/usage-period.ts'
import type { Store } from '../../store/port.ts'
import { archiving, databaseArchive } from '../../test/builders/archive.ts'
import { dedicatedDatabase, dedicatedServer, namedPlan, plan, runningStatus } from '../../test/builders/dedicated.ts'
import { plannedPeriods, presentPeriods, USAGE_FULL, usagePeriods } from './usage-periods.ts'

const NOW = new Date('2026-01-05T00:00:00.500Z')
const billing = [
  {
    id: 'disk',
    name: 'Disk',
    kind: 'storage' as const,
    unit: 'GiB-month',
    price: { amount: '1', currency: 'EUR', unit: 'GiB-month' },
  },
]
const createdAt = '2026-01-02T03:04:05.678Z'
const made = { annotations: { [annotations.createdAt]: createdAt } }
const server = (creationTimestamp: string, storageGiB = 10) => {
  const built = dedicatedServer({ spec: { size: { cpu: 1, memoryMiB: 1_024, storageGiB } } })
  return { ...built, metadata: { ...built.metadata, creationTimestamp } }
}
const first = { from: createdAt, plan: 'small', storageGiB: 10, storageItem: 'disk' }

test('the first period begins with the database, or with a server that was created later', () => {
  const database = dedicatedDatabase({ metadata: made })
  const of = (created: string) =>
    usagePeriods(
      { database, server: server(created), plan: plan({ billableItems: billing }), size: undefined, archive: undefined },
      NOW,
    )
  expect(of('2026-01-02T03:04:05Z')).toEqual([first])
  expect(of('2026-01-04T00:00:00Z')).toEqual([{ ...first, from: '2026-01-04T00:00:00.000Z' }])
})

const sizeOf = (storageGiB: number) => ({ cpu: 1, memoryMiB: 1_024, storageGiB })

test('another plan begins a period once the server has its size, and a deleted or refused plan begins none', () => {
  const status = { ...runningStatus, usagePeriods: [first] }
  const database = dedicatedDatabase({ spec: { plan: 'large' }, status })
  const input = { database, server: server('2026-01-02T03:04:05Z', 50), plan: namedPlan('large'), archive: undefined }
  expect(usagePeriods({ ...input, size: sizeOf(40) }, NOW)).toEqual([first])
  expect(usagePeriods({ ...input, size: undefined }, NOW)).toEqual([first])
  const second = { from: NOW.toISOString(), plan: 'large', storageGiB: 50 }
  expect(usagePeriods({ ...input, size: sizeOf(50) }, NOW)).toEqual([first, second])
  const deleted = { ...input, database: dedicatedDatabase({ status }), plan: undefined }
  expect(usagePeriods({ ...deleted, size: sizeOf(50) }, NOW)).toEqual([first])
})

const change = {
  database: dedicatedDatabase({ spec: { plan: 'large' }, status: { ...runningStatus, usagePeriods: [first] } }),
  server: server('2026-01-02T03:04:05Z', 50),
  ...{ plan: namedPlan('large'), size: sizeOf(50), archive: undefined },
}

test('a stale server of the desired size begins no period', async () => {
  const withServer = (found: DatabaseServer | undefined) =>
    presentPeriods({ store: { get: () => Promise.resolve(found) } as unknown as Store, now: () => NOW }, change)
  expect(await withServer(server('2026-01-02T03:04:05Z', 90))).toBeUndefined()
  expect(await withServer(undefined)).toBeUndefined()
  expect(await withServer(change.server)).toMatchObject([{ plan: 'small' }, { plan: 'large', storageGiB: 50 }])
})

test('a change of plan waits when it would drop a period that is not recorded', async () => {
  const from = (minute: number) => new Date(Date.UTC(2026, 0, 3) + minute * 60_000)
  const periods = Array.from({ length: 100 }, (_, minute) => ({ ...first, storageGiB: minute, from: from(minute).toISOString() }))
  const database = dedicatedDatabase({ spec: { plan: 'large' }, status: { ...runningStatus, usagePeriods: periods } })
  const planned = (usageRecordedUntil?: () => Promise<number>) =>
    plannedPeriods({ store: {} as Store, now: () => NOW, usageRecordedUntil }, { ...change, database })
  await expect(planned(() => Promise.resolve(0))).rejects.toMatchObject({ code: USAGE_FULL })
  await expect(planned(() => Promise.reject(new Error('no journal')))).rejects.toMatchObject({ code: USAGE_FULL })
  const dropped = [...periods.slice(1), { from: NOW.toISOString(), plan: 'large', storageGiB: 50 }]
  expect(await planned(() => Promise.resolve(from(1).getTime()))).toEqual(dropped)
  expect(await planned()).toEqual(dropped)
})

describe('backups', () => {
  const item = {
    id: 'backup',
    name: 'Backups',
    kind: 'backup' as const,
    unit: 'GiB-month',
    price: { amount: '1', currency: 'EUR', unit: 'GiB-month' },
  }
  const billed = plan({ billableItems: [...billing, item] })
  const { uid } = dedicatedDatabase().metadata
  const archiveOf = (storedBytes: number) => databaseArchive(uid, { status: { ...archiving, storedBytes } })
  const inputWith = (archive: DatabaseArchive | undefined, periods: readonly UsagePeriod[]) => ({
    database: dedicatedDatabase({ status: { ...runningStatus, usagePeriods: [...periods] } }),
    ...{ server: server('2026-01-02T03:04:05Z'), plan: billed, size: sizeOf(10), archive },
  })
  const at = (time: string) => new Date(`2026-01-05T${time}Z`)
  const stored = (time: string, backupMiB: number) => ({
    ...first,
    from: at(time).toISOString(),
    backupMiB,
    backupItem: 'backup',
  })

  test('count from their first size to their removal, and a new size from the next hour', () => {
    const after = (periods: readonly UsagePeriod[], bytes: number | undefined, time: string) =>
      usagePeriods(inputWith(bytes === undefined ? undefined : archiveOf(bytes), periods), at(time))
    const begun = after([first], 1, '08:10:00.500')
    expect(begun).toEqual([first, stored('08:10:00.500', 1)])
    expect(after(begun, 9_000_000, '08:59:59.999')).toEqual(begun)
    const grown = after(begun, 9_000_000, '09:00:20.000')
    expect(grown).toEqual([...begun, stored('09:00:00.000', 9)])
    expect(after(grown, 99_000_000, '09:30:00.000')).toEqual(grown)
    expect(after(grown, 9_000_001, '12:30:00.000')).toEqual(grown)
    expect(after(grown, undefined, '09:30:00.000')).toEqual([...grown, { ...first, from: at('09:30:00.000').toISOString() }])
  })

  test('do not count in a plan that does not bill them, or without a reported size', () => {
    const unbilled = { ...inputWith(archiveOf(1), [first]), plan: plan({ billableItems: billing }) }
    expect(usagePeriods(unbilled, NOW)).toEqual([first])
    expect(usagePeriods(inputWith(databaseArchive(uid), [first]), NOW)).toEqual([first])
  })

  test('wait with a new size when it would drop a period that is not recorded', async () => {
    const full = Array.from({ length: 100 }, (_, minute) => ({
      ...stored('00:00:00.000', minute),
      from: new Date(minute * 60_000).toISOString(),
    }))
    const planned = (usageRecordedUntil: () => Promise<number>) =>
      plannedPeriods({ store: {} as Store, now: () => NOW, usageRecordedUntil }, inputWith(archiveOf(1), full))
    expect(await planned(() => Promise.resolve(0))).toBeUndefined()
    expect(await planned(() => Promise.reject(new Error('no journal')))).toBeUndefined()
    expect(await planned(() => Promise.resolve(60_000))).toEqual([...full.slice(1), stored('00:00:00.000', 1)])
  })
})
