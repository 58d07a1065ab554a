import { expect, test } from 'vitest'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { DatabaseRecords } from '../../journal/databases.ts'
import { MooringError } from '../../shared/errors.ts'
import { decimalOf } from '../../shared/database-usage.ts'
import { type Key, keyOf } from '../../store/port.ts'
import { dedicatedDatabase } from '../../test/builders/dedicated.ts'
import { createVirtualClock } from '../../test/support/clocks.ts'
import { openTemporaryJournal } from '../../test/support/journal/temporary-journal.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { createUsageRecorder, type UsageRecorderDeps } from './usage-recorder.ts'

const at = (time: string): number => Date.parse(`2026-03-01T${time}Z`)
const [small, large] = [
  { from: '2026-03-01T08:30:00.000Z', plan: 'small', storageGiB: 10, storageItem: 'storage' },
  { from: '2026-03-01T09:45:00.000Z', plan: 'large', storageGiB: 40, storageItem: 'storage' },
]
const DAY = { from: at('00:00:00'), to: at('23:59:59') }

/** Recorders over a real journal, each at a given time of 1 March 2026. A new recorder shares no memory with the one before. */
async function bench(...databases: readonly DedicatedDatabase[]) {
  const opened = await openTemporaryJournal()
  const cache = settableCache(DedicatedDatabase)
  cache.put(...databases)
  const lines: string[] = []
  const log = { info: (_: object, text: string) => lines.push(text), warn: (_: object, text: string) => lines.push(text) }
  const { databases: records } = opened.journal
  const recorder = (time: string, about: Partial<UsageRecorderDeps> = {}) =>
    createUsageRecorder({
      ...{ databases: cache.cache, records, now: () => new Date(at(time)) },
      log: log as unknown as UsageRecorderDeps['log'],
      ...about,
    })
  return {
    ...{ records, lines, recorder },
    /** Runs a recorder until it has polled once. */
    async poll(time: string, about: Partial<UsageRecorderDeps> = {}) {
      const clock = createVirtualClock()
      const stop = new AbortController()
      const running = recorder(time, { ...about, clock }).run(stop.signal)
      await expect.poll(() => clock.pending()).toBe(1)
      return {
        again: () => clock.advance(60_000),
        async [Symbol.asyncDispose]() {
          stop.abort()
          await running
        },
      }
    },
    async sums(of = databases[0]) {
      const usage = await records.usage({ database: of?.metadata.uid ?? '', ...DAY })
      return usage.map(({ item, millionths }) => `${item} ${decimalOf(millionths)}`)
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

const database = dedicatedDatabase({ status: { usagePeriods: [small, large] } })

test('whole hours are recorded a minute after their end, and hours without an operator later', async () => {
  await using b = await bench(database)
  await (await b.poll('10:00:59'))[Symbol.asyncDispose]()
  expect(await b.sums()).toEqual(['small 0.5', 'storage 5'])
  await (await b.poll('10:01:00'))[Symbol.asyncDispose]()
  expect(await b.sums()).toEqual(['large 0.25', 'small 1.25', 'storage 22.5'])
  await (await b.poll('14:30:00'))[Symbol.asyncDispose]()
  await (await b.poll('14:30:00'))[Symbol.asyncDispose]()
  expect(await b.sums()).toEqual(['large 4.25', 'small 1.25', 'storage 182.5'])
})

test('the use of a deleted database is recorded until the request of its deletion', async () => {
  const { metadata, status } = database
  const going = dedicatedDatabase({ metadata: { ...metadata, deletionTimestamp: '2026-03-01T09:15:00Z' }, status })
  await using b = await bench(going)
  const recorder = b.recorder('12:00:00')
  await recorder.finish(going)
  await recorder.finish(going)
  expect(await b.sums()).toEqual(['small 0.75', 'storage 7.5'])
  await (await b.poll('14:30:00'))[Symbol.asyncDispose]()
  expect(await b.sums()).toEqual(['small 0.75', 'storage 7.5'])
})

test('a journal that is unavailable delays the records, and is logged once', async () => {
  await using b = await bench(database)
  let isAway = true
  const keepUsage: DatabaseRecords['keepUsage'] = (records) =>
    isAway ? Promise.reject(new MooringError('journal_away', 'no journal')) : b.records.keepUsage(records)
  await using running = await b.poll('10:30:00', { records: { ...b.records, keepUsage } })
  await running.again()
  expect(await b.sums()).toEqual([])
  isAway = false
  await running.again()
  await expect.poll(() => b.sums()).toEqual(['large 0.25', 'small 1.25', 'storage 22.5'])
  await expect
    .poll(() => b.lines)
    .toEqual([
      'usage of dedicated databases was not recorded; it is tried again',
      'usage of dedicated databases is recorded again',
    ])
})

test.each([
  {
    name: 'until the request of its deletion',
    metadata: { deletionTimestamp: '2026-03-01T09:15:00Z' },
    hours: ['small 0.75', 'storage 7.5'],
  },
  { name: 'until now without one', metadata: {}, hours: ['large 0.25', 'small 1.25', 'storage 22.5'] },
])('the use of a database that disappears is recorded $name', async ({ metadata, hours }) => {
  const lost = dedicatedDatabase({ metadata, status: { usagePeriods: [small, large] } })
  const cache = settableCache(DedicatedDatabase)
  cache.put(lost)
  const handlers = new Set<(key: Key) => void>()
  const onChange = (handler: (key: Key) => void) => {
    handlers.add(handler)
    return () => void handlers.delete(handler)
  }
  await using b = await bench()
  const running = await b.poll('10:00:00', { databases: { ...cache.cache, onChange } })
  expect(await b.sums(lost)).toEqual(['small 0.5', 'storage 5'])
  cache.remove(lost)
  handlers.forEach((handler) => handler(keyOf(lost)))
  await running.again()
  await expect.poll(() => b.sums(lost)).toEqual(hours)
  await running[Symbol.asyncDispose]()
  expect(handlers.size).toBe(0)
})

test('a database without a server has no usage', async () => {
  const none = dedicatedDatabase()
  await using b = await bench(none)
  await (await b.poll('14:30:00'))[Symbol.asyncDispose]()
  expect(await b.sums()).toEqual([])
})
