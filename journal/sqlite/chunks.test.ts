import fc from 'fast-check'
import { expect, test } from 'vitest'
import { idAt, requestRecord } from '../../test/conformance/journal/records.ts'
import type { RequestRecord } from '../port.ts'
import { requestBatch, rowsOfTunnel } from '../request-text.ts'
import { chunksOf } from './chunks.ts'
import { DAY_MS, CHUNK_MS, ROW_LENGTH } from './layout.ts'

const NOW = 20_000 * DAY_MS
const TUNNELS = ['one', 'two', 'three']
const numbers = { of: (uid: string) => TUNNELS.indexOf(uid), forget: () => undefined }

/** Requests around midnight, of several periods and tunnels, in any order. */
const records = fc.array(
  fc
    .record({
      tunnel: fc.constantFrom(...TUNNELS),
      at: fc.integer({ min: NOW - 3 * CHUNK_MS, max: NOW + 3 * CHUNK_MS }),
      path: fc.string({ unit: 'binary', maxLength: 9 }),
      status: fc.constantFrom(200, 404, 502),
      durationMs: fc.constantFrom(0, 7, 12.5, 1e21),
      bytesIn: fc.constantFrom(0, 10, 2 ** 40),
      bytesOut: fc.constantFrom(0, 9, 2 ** 31),
      sourceIp: fc.constantFrom('203.0.113.1', '203.0.113.10', '2001:db8::1'),
      origin: fc.constantFrom('edge' as const, 'backend' as const),
      reason: fc.constantFrom(null, 'ip_denied'),
    })
    .map((about) => requestRecord({ ...about, path: about.path.replaceAll(/[\n\r]/g, ' ') })),
  { maxLength: 30 },
)

test('each request is in one chunk, with others of its tunnel and its 256 ms only, and is read back unchanged', () => {
  fc.assert(
    fc.property(records, (given) => {
      const { chunks, refused } = chunksOf(requestBatch(given), NOW, numbers)
      const read = chunks.map((chunk) => ({
        chunk,
        rows: rowsOfTunnel(Buffer.from(chunk.text).toString(), TUNNELS[chunk.tunnel] ?? ''),
      }))
      expect(refused).toBe(0)
      expect(read.flatMap(({ rows }) => rows).sort(byId)).toEqual(given.toSorted(byId))
      for (const { chunk, rows } of read) {
        expect(new Set(rows.map(({ at }) => Math.floor(at / CHUNK_MS))).size).toBe(1)
        expect(chunk.id).toBe(rows.map(({ id }) => id).sort()[0])
        expect(chunk.day).toBe(Math.floor((rows[0]?.at ?? 0) / DAY_MS))
        expect(chunk.requests).toEqual(rows.map((row) => keptOf(row, chunk.tunnel)))
      }
      expect(Math.max(0, ...chunks.map(({ text }) => text.length))).toBeLessThanOrEqual(ROW_LENGTH)
      const sizes = Map.groupBy(read, ({ chunk }) => `${chunk.tunnel} ${chunk.id.slice(0, 11)}`)
      // Two successive rows would not fit into one.
      for (const same of sizes.values()) {
        for (const [index, { chunk }] of same.slice(1).entries()) {
          expect((same[index]?.chunk.text.length ?? 0) + (Buffer.from(chunk.text).indexOf('http/1.1') + 9)).toBeGreaterThan(
            ROW_LENGTH,
          )
        }
      }
    }),
  )
})

const keptOf = ({ at, status, durationMs, bytesIn, bytesOut, sourceIp: ip, origin }: RequestRecord, tunnel: number) => {
  return { tunnel, time: at, at, status, durationMs, bytesIn, bytesOut, edge: origin === 'edge', ip }
}
const byId = (one: { readonly id: string }, other: { readonly id: string }) => (one.id < other.id ? -1 : 1)

test('invalid requests, and those of a day that is not kept, are counted', () => {
  const wrong = [{ id: 'none' }, { status: NaN }, { id: idAt(NOW - 9 * DAY_MS) }, { id: idAt(NOW + 3 * DAY_MS) }]
  const given = [{}, ...wrong, {}].map((about) => requestRecord({ tunnel: 'one', at: NOW, ...about }))
  const { chunks, refused } = chunksOf(requestBatch(given), NOW, numbers)
  expect([refused, chunks.flatMap(({ requests }) => requests).length]).toEqual([4, 2])
})

test('a truncated batch is rejected', () => {
  expect(() => chunksOf(requestBatch([requestRecord({ tunnel: 'one' })]).subarray(0, -20), NOW, numbers)).toThrow('truncated')
})
