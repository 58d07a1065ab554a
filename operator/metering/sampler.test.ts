import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { DatabaseRecords, KeptSample } from '../../journal/databases.ts'
import { MooringError } from '../../shared/errors.ts'
import { dedicatedDatabase, runningStatus } from '../../test/builders/dedicated.ts'
import { createVirtualClock } from '../../test/support/clocks.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import type { EngineAdmin, Measured } from '../engines/engine.ts'
import { postgresql } from '../engines/postgresql/postgresql.ts'
import { registerSamples } from './sample-metrics.ts'
import { createSampler } from './sampler.ts'

const START = Date.parse('2026-03-01T10:00:00Z')
const values: Measured = {
  ...{ connections: 3, sizeBytes: 5_000, transactions: 1_000, pages: { reads: 2_000, misses: 100 } },
  slow: { running: 1 },
}

function monitored(name: string, monitoring = true): DedicatedDatabase {
  return dedicatedDatabase({
    metadata: { name, uid: `uid-of-${name}`, resourceVersion: monitoring ? '7' : '8' },
    spec: { monitoring },
    status: { ...runningStatus, name, serverRef: { name: `server-of-${name}` } },
  })
}

/** Sampler in virtual time, over servers whose measurements the test defines by server name. */
function bench(measure: (server: string) => Promise<Measured | undefined>) {
  const clock = createVirtualClock()
  const cache = settableCache(DedicatedDatabase)
  const kept: KeptSample[] = []
  const lines: string[] = []
  let isAway = false
  const keepSamples: DatabaseRecords['keepSamples'] = async (samples) => {
    if (isAway) throw new MooringError('journal_away', 'no journal')
    kept.push(...samples)
  }
  const say = (_: object, line: string) => void lines.push(line)
  const sampler = createSampler({
    ...{ databases: cache.cache, records: { keepSamples }, clock, now: () => new Date(START + clock.now()) },
    log: { info: say, warn: say } as unknown as Parameters<typeof createSampler>[0]['log'],
    archives: { get: () => undefined },
    admins: { get: (server) => ({ engine: postgresql, admin: { measure: () => measure(server) } as unknown as EngineAdmin }) },
  })
  const stop = new AbortController()
  const running = sampler.run(stop.signal)
  return {
    ...{ cache, clock, kept, lines, sampler },
    /** Returns the seconds at which a database was sampled. */
    seconds: (name: string) => kept.filter(({ database }) => database === `uid-of-${name}`).map(({ at }) => (at - START) / 1_000),
    away: (state: boolean) => (isAway = state),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}

test('a database with monitoring is sampled at once, again soon, then every 30 s, until its monitoring ends', async () => {
  await using b = bench(async () => values)
  b.cache.put(monitored('shop'), monitored('other', false))
  await b.clock.advance(70_000)
  expect(b.seconds('shop')).toEqual([0, 5, 35, 65])
  expect(b.seconds('other')).toEqual([])
  expect(b.kept.map(({ transactionsPerSecond }) => transactionsPerSecond)).toEqual([null, 0, 0, 0])
  b.cache.put(monitored('shop', false))
  await b.clock.advance(60_000)
  expect(b.seconds('shop')).toHaveLength(4)
  expect(b.sampler.latest()).toEqual([])
})

test('a server that does not respond has one measurement under way, and delays no other server', async () => {
  const hung = Promise.withResolvers<Measured>()
  let calls = 0
  await using b = bench((server) => {
    if (server !== 'server-of-hung') return Promise.resolve(values)
    calls += 1
    return hung.promise
  })
  b.cache.put(monitored('hung'), monitored('shop'))
  await b.clock.advance(70_000)
  expect([b.seconds('hung'), b.seconds('shop'), calls]).toEqual([[], [0, 5, 35, 65], 1])
  hung.resolve(values)
  await b.clock.advance(10_000)
  expect(b.seconds('hung')).toEqual([75, 80])
})

test('a measurement that fails, or finds no database, yields no sample', async () => {
  const results = [() => Promise.reject(new Error('down')), () => Promise.resolve(undefined), () => Promise.resolve(values)]
  await using b = bench(() => (results.shift() ?? (() => Promise.resolve(values)))())
  b.cache.put(monitored('shop'))
  await b.clock.advance(16_000)
  expect(b.seconds('shop')[0]).toBeOneOf([10, 15])
})

test.each([
  { name: 'fails', measure: () => Promise.reject(new Error('too large')) },
  { name: 'finds no database', measure: () => Promise.resolve(undefined) },
])('a measurement that $name each time is repeated less and less often', async ({ measure }) => {
  const times: number[] = []
  await using b = bench(() => {
    times.push(b.clock.now())
    return measure()
  })
  b.cache.put(monitored('shop'))
  await b.clock.advance(900_000)
  expect(times.length).toBeGreaterThan(8)
  expect(times.length).toBeLessThan(20)
})

test('a measurement that takes too long each time is repeated less and less often', async () => {
  let calls = 0
  await using b = bench(() => {
    calls += 1
    return new Promise((resolve) => b.clock.after(12_000, () => resolve(values)))
  })
  b.cache.put(monitored('shop'))
  await b.clock.advance(900_000)
  expect(calls).toBeGreaterThan(8)
  expect(calls).toBeLessThan(20)
  expect(b.seconds('shop')).toEqual([])
})

test('samples wait while the journal is unavailable, and the log says so once', async () => {
  await using b = bench(async () => values)
  b.away(true)
  b.cache.put(monitored('shop'))
  await b.clock.advance(40_000)
  expect(b.seconds('shop')).toEqual([])
  b.away(false)
  await b.clock.advance(5_000)
  expect(b.seconds('shop')).toEqual([0, 5, 35])
  expect(b.lines).toEqual([
    'samples of dedicated databases were not kept; it is tried again',
    'samples of dedicated databases are kept again',
  ])
})

test('the metrics have the last sample of each database, if it is at most a minute old', async () => {
  let isUp = true
  await using b = bench(() => Promise.resolve(isUp ? values : undefined))
  const registry = new Registry()
  registerSamples(registry, b.sampler)
  b.cache.put(monitored('shop'))
  await b.clock.advance(10_000)
  const text = await registry.metrics()
  expect(text).toContain('mooring_database_connections{namespace="acme--prod",database="shop"} 3')
  expect(text).toContain('mooring_database_size_bytes{namespace="acme--prod",database="shop"} 5000')
  expect(text).toContain('mooring_database_slow_statements{namespace="acme--prod",database="shop"} 1')
  isUp = false
  await b.clock.advance(70_000)
  expect(await registry.metrics()).not.toMatch(/^mooring_database_connections\{/m)
})
