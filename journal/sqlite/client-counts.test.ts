import fc from 'fast-check'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { openTemporaryJournal } from '../../test/support/journal/temporary-journal.ts'
import { MINUTE_MS } from '../search.ts'
import { createClientCounts, createClientReader, topOf } from './client-counts.ts'

const FIRST = 29_000_040
const batches = fc.array(
  fc.array(fc.record({ tunnel: fc.constantFrom(1, 2), minute: fc.nat(200), ip: fc.constantFrom('a', 'b', 'c') }), {
    maxLength: 8,
  }),
  { maxLength: 20 },
)

test('the counts of any span match its requests, in any order and with any restarts', async () => {
  await using place = await openTemporaryJournal()
  using db = new DatabaseSync(place.path)
  const run = (given: readonly (readonly { tunnel: number; minute: number; ip: string }[])[], from: number, length: number) => {
    db.exec('DELETE FROM client_minutes; DELETE FROM client_hours')
    let counts = createClientCounts(db)
    for (const [index, batch] of given.entries()) {
      if (index % 7 === 6) counts = createClientCounts(db)
      if (index % 5 === 4) counts.forget()
      counts.add(batch.map(({ minute, ...rest }) => ({ ...rest, time: (FIRST + minute) * MINUTE_MS })))
    }
    const expected = new Map<string, number>()
    for (const { tunnel, minute, ip } of given.flat()) {
      if (tunnel === 1 && minute >= from && minute < from + length) expected.set(ip, (expected.get(ip) ?? 0) + 1)
    }
    const found = createClientReader(db)(1, FIRST + from, FIRST + from + length)
    expect(topOf(found, 10)).toEqual(topOf(expected, 10))
  }
  fc.assert(fc.property(batches, fc.nat(200), fc.nat(200), run), { numRuns: 200 })
})
