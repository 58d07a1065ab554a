import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeFrame, encodeFrame, type Frame, HEADER_BYTES, splitRequests } from './frame.ts'
import { requestRecord } from '../../test/conformance/journal/records.ts'
import { requestBatch, requestRows } from '../request-text.ts'

const frames: fc.Arbitrary<Frame> = fc.record({
  kind: fc.constantFrom('requests', 'connection', 'audit'),
  records: fc.nat(10_000),
  payload: fc.uint8Array({ maxLength: 500 }).map((bytes) => Buffer.from(bytes)),
})

test('a frame is read back unchanged, whatever follows it', () => {
  fc.assert(
    fc.property(frames, fc.uint8Array(), (frame, after) => {
      expect(decodeFrame(Buffer.concat([encodeFrame(frame), after]))).toEqual(frame)
    }),
  )
})

test('a frame truncated anywhere is rejected', () => {
  fc.assert(
    fc.property(frames, fc.nat(), (frame, at) => {
      const whole = encodeFrame(frame)
      expect(decodeFrame(whole.subarray(0, at % whole.length))).toBeUndefined()
    }),
  )
})

test('a frame with a flipped bit is rejected, or its length exceeds the data', () => {
  fc.assert(
    fc.property(frames, fc.nat(), fc.nat(7), (frame, at, bit) => {
      const bytes = encodeFrame(frame)
      const index = at % bytes.length
      bytes.writeUInt8(bytes.readUInt8(index) ^ (1 << bit), index)
      expect(decodeFrame(bytes)).toBeUndefined()
    }),
  )
})

test('any bytes are decoded without an exception', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: HEADER_BYTES }), (bytes) => {
      decodeFrame(Buffer.from(bytes))
    }),
  )
})

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
