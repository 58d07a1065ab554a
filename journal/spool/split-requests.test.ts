import fc from 'fast-check'
import { expect, test } from 'vitest'
import { requestRecord } from '../../test/conformance/journal/records.ts'
import { requestBatch } from '../request-lines.ts'
import { requestRows } from '../request-text.ts'
import { splitRequests } from './split-requests.ts'

const records = fc.array(
  fc.constantFrom('one', 'two').map((tunnel) => requestRecord({ tunnel, path: '/ü' })),
  { maxLength: 12 },
)

test('each part can be read by itself, and together they equal the batch', () => {
  fc.assert(
    fc.property(records, fc.integer({ min: 1, max: 5 }), (given, most) => {
      const pieces = [...splitRequests(Buffer.from(requestBatch(given)), most)]
      const rows = pieces.map(({ payload }) => requestRows(payload))
      expect(rows.flat()).toEqual(given)
      expect(pieces.map((piece) => piece.records)).toEqual(rows.map(({ length }) => length))
      expect(rows.slice(0, -1).every(({ length }) => length === most)).toBe(true)
    }),
  )
})

test('a truncated batch keeps all bytes, and its whole requests can be read', () => {
  const [first, second] = [requestRecord({ tunnel: 'one' }), requestRecord({ tunnel: 'one' })]
  const [whole, rest] = [...splitRequests(Buffer.from(requestBatch([first, second])).subarray(0, -20), 1)]
  expect(requestRows(whole?.payload ?? new Uint8Array())).toEqual([first])
  expect(rest?.payload.includes(second.id)).toBe(true)
})

test('a tunnel without requests yields no part', () => {
  expect([...splitRequests(Buffer.from('@a\n@b\n'), 1)]).toEqual([])
  expect([...splitRequests(Buffer.alloc(0), 1)]).toEqual([])
})
