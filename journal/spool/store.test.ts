import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { requestRecord } from '../../test/conformance/journal/records.ts'
import { requestBatch } from '../request-text.ts'
import { type FaultyFiles, faultyFiles } from '../../test/support/journal/segment-logs.ts'
import type { SegmentLog } from './segment-log.ts'
import { openSpoolStore } from './store.ts'

interface TestSpoolStore extends Disposable {
  readonly files: FaultyFiles
  readonly dropped: Record<'requests' | 'events', number>
  readonly keep: (what: { readonly requests?: readonly Uint8Array[]; readonly connections?: readonly string[] }) => void
  readonly bytes: () => number
  /** Takes all frames. */
  readonly events: () => readonly string[]
  readonly requests: () => number
}

function storeOf(bytes: number): TestSpoolStore {
  const directory = mkdtempSync(join(tmpdir(), 'mooring-store-'))
  const files = faultyFiles()
  const dropped = { requests: 0, events: 0 }
  const store = openSpoolStore({ directory, bytes, files, onDropped: (what, records) => (dropped[what] += records) })
  return {
    ...{ files, dropped },
    keep: (what) => store.keep({ type: 'keep', requests: [], connections: [], audit: [], ...what }),
    bytes: () => store.events.bytes + store.requests.bytes,
    events: () => textsIn(store.events),
    requests: () => store.requests.records,
    [Symbol.dispose]: () => rmSync(directory, { recursive: true }),
  }
}

function textsIn(log: SegmentLog): readonly string[] {
  const texts: string[] = []
  const most = { records: 1_000, bytes: 1 << 20 }
  for (let batch = log.read(most); batch; batch = log.read(most)) {
    texts.push(...batch.frames.map(({ payload }) => payload.toString().trimEnd()))
    log.take(batch)
  }
  return texts
}

const MIB = 1 << 20
const request = requestBatch([requestRecord({ tunnel: 't', path: `/${'x'.repeat(2_000)}` })])
const event = (index: number, size = 100_000) => `event ${index}`.padEnd(size)

test.each(['EIO', 'EROFS'])('a write that fails with %s drops no record, and succeeds once the disk works', (code) => {
  using place = storeOf(100 * MIB)
  place.keep({ requests: [request], connections: ['first'] })
  place.files.failing.set('append', code)
  for (let tries = 0; tries < 3; tries += 1) {
    expect(() => place.keep({ requests: [request], connections: ['second'] })).toThrow(
      expect.objectContaining({ code: 'unavailable', again: true }),
    )
  }
  place.files.failing.clear()
  place.keep({ requests: [request], connections: ['second'] })
  expect([place.events(), place.requests()]).toEqual([['first', 'second'], 2])
  expect(place.dropped).toEqual({ requests: 0, events: 0 })
})

test('an event written before its shipment failed is not written again by a retry', () => {
  using place = storeOf(100 * MIB)
  place.files.room = 200
  for (let tries = 0; tries < 5; tries += 1) {
    expect(() => place.keep({ connections: ['fits'.padEnd(100), 'x'.repeat(300)] })).toThrow('ENOSPC')
  }
  place.files.room = Infinity
  place.keep({ connections: ['fits'.padEnd(100), 'x'.repeat(300)] })
  expect(place.events()).toEqual(['fits', 'x'.repeat(300)])
})

test.each([
  { what: 'an event', late: { connections: ['late'] }, requests: 0 },
  { what: 'a request', late: { requests: [request] }, requests: 1 },
])('on a full disk the oldest requests are dropped, then $what must wait; no event is dropped', ({ late, requests }) => {
  using place = storeOf(100 * MIB)
  for (let count = 0; count < 3_000; count += 1) place.keep({ requests: [request] })
  place.keep({ connections: ['kept'] })
  place.files.room = 0
  // The second attempt finds no file that may be dropped.
  for (let tries = 0; tries < 2; tries += 1) expect(() => place.keep(late)).toThrow('ENOSPC')
  expect([place.requests(), place.dropped]).toEqual([0, { requests: 3_000, events: 0 }])
  place.files.room = Infinity
  place.keep(late)
  expect([place.events(), place.requests()]).toEqual([['kept', ...(late.connections ?? [])], requests])
})

test('past the bound requests are dropped first, then the oldest files of events, counted; the newest stay', () => {
  using place = storeOf(12 * MIB)
  for (let count = 0; count < 2_000; count += 1) place.keep({ requests: [request] })
  const indexes = Array.from({ length: 300 }, (_, index) => index)
  for (const index of indexes) {
    place.keep({ connections: [event(index)] })
    expect(place.bytes()).toBeLessThanOrEqual(12 * MIB)
    if (place.dropped.events > 0) expect(place.dropped.requests).toBe(2_000)
  }
  const events = place.events()
  expect(events.length).toBeGreaterThan(60)
  expect(events).toEqual(indexes.slice(place.dropped.events).map((index) => `event ${index}`))
})

test('past the bound no record is written while no file can be removed', () => {
  using place = storeOf(10 * MIB)
  for (let count = 0; count < 4_500; count += 1) place.keep({ requests: [request] })
  place.files.failing.set('remove', 'EROFS')
  for (let tries = 0; tries < 20; tries += 1) {
    expect(() => place.keep({ connections: [event(tries, 2 * MIB)] })).toThrow(expect.objectContaining({ again: true }))
  }
  expect(place.bytes()).toBeLessThanOrEqual(10 * MIB)
  place.files.failing.clear()
  place.keep({ connections: [event(1, 2 * MIB)] })
  expect(place.events()).toEqual(['event 1'])
})
