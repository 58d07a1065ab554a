import { randomUUIDv7 } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { DatabaseJournal, KeptSample, UsageRecord } from '../../../journal/databases.ts'
import { HOUR_MS } from '../../../shared/database-usage.ts'
import { newNamespace } from './test-journal.ts'

const MINUTE_MS = 60_000
const HOUR = Math.floor(Date.now() / HOUR_MS) * HOUR_MS

function usageRecord(about: Partial<UsageRecord> & Pick<UsageRecord, 'database' | 'namespace'>): UsageRecord {
  const from = about.from ?? HOUR
  return { name: 'shop', item: 'small', unit: 'hour', millionths: 1_000_000, from, to: from + HOUR_MS, ...about }
}

const sample = (database: string, at: number, about: Partial<KeptSample> = {}): KeptSample => ({
  ...{ database, at, connections: 2, sizeBytes: 1_000, transactionsPerSecond: 4, cacheHitRatio: 0.5, slowStatements: 1 },
  backupAgeSeconds: null,
  ...about,
})

/** Contract of the records of dedicated databases, one test for each clause, the same for every implementation. */
export function databaseConformance(name: string, open: () => DatabaseJournal): void {
  describe(name, () => {
    test('sums up the use of a span by database and item, and keeps each record once', async () => {
      const { databases } = open()
      const namespace = newNamespace()
      const [database, other] = [randomUUIDv7(), randomUUIDv7()]
      const storage = { item: 'storage', unit: 'GiB-hour', millionths: 10_000_000 } as const
      const records = [0, 1, 2].flatMap((hour) => {
        const own = { database, namespace, from: HOUR + hour * HOUR_MS }
        return [usageRecord(own), usageRecord({ ...own, ...storage })]
      })
      const ofOther = usageRecord({ database: other, namespace, name: 'archive' })
      await databases.keepUsage([...records, ofOther])
      await databases.keepUsage(records.map((record) => ({ ...record, millionths: 5 })))
      const span = { from: HOUR, to: HOUR + 3 * HOUR_MS }
      const sums = [
        usageRecord({ database, namespace, millionths: 3_000_000, ...span }),
        usageRecord({ database, namespace, ...storage, millionths: 30_000_000, ...span }),
      ]
      expect(await databases.usage({ database, ...span })).toEqual(sums)
      expect(await databases.usage({ namespace, ...span })).toEqual([ofOther, ...sums])
      expect(await databases.usage({ database, from: HOUR + 3 * HOUR_MS, to: HOUR + 4 * HOUR_MS })).toEqual([])
      expect(await databases.usage({ database: 'x', ...span })).toEqual([])
      await databases.keepUsage([])
    })

    test('counts a record that the span cuts by its share of the time', async () => {
      const { databases } = open()
      const about = { database: randomUUIDv7(), namespace: newNamespace() }
      const half = { from: HOUR + 30 * MINUTE_MS, to: HOUR + HOUR_MS, millionths: 500_000 }
      await databases.keepUsage([usageRecord({ ...about, ...half }), usageRecord({ ...about, from: HOUR + HOUR_MS })])
      const span = { from: HOUR + 45 * MINUTE_MS, to: HOUR + 75 * MINUTE_MS }
      expect(await databases.usage({ database: about.database, ...span })).toEqual([
        usageRecord({ ...about, millionths: 500_000, ...span }),
      ])
      const early = { from: HOUR, to: HOUR + 40 * MINUTE_MS }
      expect(await databases.usage({ database: about.database, ...early })).toEqual([
        usageRecord({ ...about, millionths: 166_667, from: half.from, to: early.to }),
      ])
    })

    test('returns the end of the last recorded hour', async () => {
      const { databases } = open()
      const [database, none] = [randomUUIDv7(), randomUUIDv7()]
      const about = { database, namespace: newNamespace() }
      await databases.keepUsage([usageRecord({ ...about, from: HOUR + HOUR_MS, to: HOUR + HOUR_MS + 1 }), usageRecord(about)])
      expect([...(await databases.usageUntil([database, none, 'x']))]).toEqual([[database, HOUR + 2 * HOUR_MS]])
    })

    test('returns the samples of a span, oldest first, and merges those of one interval', async () => {
      const { databases } = open()
      const [database, other] = [randomUUIDv7(), randomUUIDv7()]
      const unknown = { transactionsPerSecond: null, cacheHitRatio: null, slowStatements: null }
      const kept = [
        sample(database, HOUR, unknown),
        sample(database, HOUR + 30_000, { connections: 5, sizeBytes: 3_000 }),
        sample(database, HOUR + MINUTE_MS, {
          transactionsPerSecond: 8,
          cacheHitRatio: 1,
          slowStatements: 2,
          backupAgeSeconds: 60,
        }),
      ]
      await databases.keepSamples([...kept.toReversed(), sample(other, HOUR)])
      await databases.keepSamples(kept.map((each) => ({ ...each, connections: 9 })))
      const span = { from: HOUR, to: HOUR + HOUR_MS }
      const plain = kept.map(({ at, connections, sizeBytes, transactionsPerSecond, ...rest }) => ({
        ...{ at, connections, sizeBytes, transactionsPerSecond, cacheHitRatio: rest.cacheHitRatio },
        ...{ slowStatements: rest.slowStatements, backupAgeSeconds: rest.backupAgeSeconds },
      }))
      expect(await databases.samples(database, span)).toEqual(plain)
      expect(await databases.samples(database, { from: HOUR + 1, to: HOUR + MINUTE_MS })).toEqual([plain[1]])
      expect(await databases.samples(database, span, MINUTE_MS)).toEqual([{ ...plain[1], at: HOUR, connections: 3.5 }, plain[2]])
      expect(await databases.samples(database, span, HOUR_MS)).toEqual([
        {
          ...{ at: HOUR, connections: 3, sizeBytes: 3_000, transactionsPerSecond: 6, cacheHitRatio: 0.75 },
          ...{ slowStatements: 3, backupAgeSeconds: 60 },
        },
      ])
      expect(await databases.samples('x', span)).toEqual([])
      await databases.keepSamples([])
    })
  })
}
