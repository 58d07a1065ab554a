import type { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { requestRecord } from '../../test/conformance/journal/records.ts'
import { matchesFilter } from '../search.ts'
import type { RequestFilter, RequestRecord } from '../port.ts'
import { requestBatch } from '../request-text.ts'
import { createRequestKeeper, type RequestKeeper, createRequestReader } from './requests.ts'
import { DAY_MS, openForWriting } from './layout.ts'
import { openTemporaryJournal, type TemporaryJournal } from '../../test/support/journal/temporary-journal.ts'
import { createTunnelNumbers } from './ids.ts'

/** Requests share rows, in the order in which they ended, and no search may reveal that. */

const NOW = 20_000 * DAY_MS
/** Two periods of 256 ms that meet at midnight, one across two minutes, and one of another day. */
const STARTS = [NOW - 256, NOW, NOW + 59_904, NOW - 2 * DAY_MS]

let place: TemporaryJournal
let db: DatabaseSync
let keeper: RequestKeeper
let read: ReturnType<typeof createRequestReader>
beforeAll(async () => {
  place = await openTemporaryJournal()
  db = openForWriting(place.path)
  keeper = createRequestKeeper(db, createTunnelNumbers(db))
  read = createRequestReader(db)
})
afterAll(async () => {
  db.close()
  await place[Symbol.asyncDispose]()
})

let tunnels = 0
const freshTunnel = () => `tunnel-${(tunnels += 1)}`
const newestFirst = (records: readonly RequestRecord[]) => records.toSorted((one, other) => (one.id < other.id ? 1 : -1))

const batches = fc.array(
  fc.array(
    fc.record({
      at: fc.tuple(fc.constantFrom(...STARTS), fc.nat(255)).map(([start, more]) => start + more),
      status: fc.constantFrom(200, 404, 502),
      path: fc.constantFrom('/', '/a', '/ab'),
      method: fc.constantFrom('GET', 'POST'),
      sourceIp: fc.constantFrom('203.0.113.1', '203.0.113.10'),
      reason: fc.constantFrom(null, 'ip_denied'),
    }),
    { maxLength: 12 },
  ),
  { minLength: 1, maxLength: 6 },
)
const filters = fc.record(
  {
    from: fc.constantFrom(NOW - DAY_MS, NOW - 100, NOW, NOW + 100),
    to: fc.constantFrom(NOW - DAY_MS, NOW - 100, NOW + 1, NOW + 100),
    statusClass: fc.constantFrom(2, 4, 5),
    pathPrefix: fc.constantFrom('', '/a', '/ab'),
    method: fc.constantFrom('POST', 'PUT'),
    status: fc.constantFrom(200, 404, 20),
    sourceIp: fc.constantFrom('203.0.113.1', '203.0.113'),
    reason: fc.constantFrom('ip_denied', 'denied'),
  },
  { requiredKeys: [] },
)

/** Reads all pages. */
async function pages(filter: RequestFilter, limit: number): Promise<readonly RequestRecord[]> {
  const found: RequestRecord[] = []
  for (;;) {
    const page = await read(filter, { limit, before: found.at(-1)?.id })
    expect(page.length).toBeLessThanOrEqual(limit)
    if (page.length === 0) return found
    found.push(...page)
  }
}

test('a search returns the matches, newest first, in pages of any size', async () => {
  const run = async (given: readonly (readonly Partial<RequestRecord>[])[], by: Omit<RequestFilter, 'tunnel'>, limit: number) => {
    const tunnel = freshTunnel()
    const made = given.map((batch) => batch.map((about) => requestRecord({ tunnel, ...about })))
    for (const batch of made) keeper.keep([requestBatch(batch)], NOW)
    const filter = { tunnel, ...by }
    expect(await pages(filter, limit)).toEqual(newestFirst(made.flat().filter((record) => matchesFilter(record, filter))))
  }
  await fc.assert(fc.asyncProperty(batches, filters, fc.integer({ min: 1, max: 9 }), run), { numRuns: 200 })
})

test('a busy minute, searched in several ranges, is returned once', async () => {
  const tunnel = freshTunnel()
  // Each batch has requests of every second.
  const made = Array.from({ length: 30 }, (_, batch) =>
    Array.from({ length: 1_500 }, (_, index) => requestRecord({ tunnel, at: NOW + index * 39 + batch })),
  )
  for (const batch of made) keeper.keep([requestBatch(batch)], NOW)
  const ids = (await pages({ tunnel }, 7_000)).map(({ id }) => id)
  expect(ids).toEqual(newestFirst(made.flat()).map(({ id }) => id))
})

test('a batch shipped again adds no record, alone or with others', async () => {
  const tunnel = freshTunnel()
  const [one, two] = [0, 1].map(() => STARTS.map((at) => requestRecord({ tunnel, at }))) as [RequestRecord[], RequestRecord[]]
  keeper.keep([requestBatch(one)], NOW)
  keeper.keep([requestBatch(one), requestBatch(two)], NOW)
  keeper.keep([requestBatch(two)], NOW)
  expect(await read({ tunnel }, { limit: 100 })).toEqual(newestFirst([...one, ...two]))
  const sums = db
    .prepare('SELECT sum(requests) AS requests FROM minutes JOIN tunnels ON number = tunnel WHERE uid = ?')
    .get(tunnel)
  expect(sums).toEqual({ requests: 8 })
  const clients = db.prepare('SELECT clients FROM client_minutes JOIN tunnels ON number = tunnel WHERE uid = ?').all(tunnel)
  expect(
    clients
      .flatMap(({ clients }) => JSON.parse(String(clients)) as [string, number][])
      .reduce((sum, [, count]) => sum + count, 0),
  ).toBe(8)
})
