import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeFrame, encodeFrame, type Frame, HEADER_BYTES } from './frame.ts'

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
