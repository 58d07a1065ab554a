import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { Writes } from './writes.ts'

/** Visitor that reads when the test requests it. */
function visitor() {
  const taken: Buffer[] = []
  const waiting: (() => void)[] = []
  const stream = new Writable({
    highWaterMark: 64 * 1024,
    write(chunk: Buffer, _encoding, done) {
      taken.push(chunk)
      waiting.push(done)
    },
  })
  return { stream, taken, read: () => waiting.splice(0).forEach((done) => done()) }
}

test('a visitor that does not read gets a bounded number of writes, however small they are', async () => {
  const { stream, taken, read } = visitor()
  let drained = 0
  const writes = new Writes(stream, () => (drained += 1))
  // Each is a part of a much larger buffer.
  const byte = () => Buffer.alloc(64 * 1024, 'x').subarray(0, 1)
  let written = 1
  while (writes.write(byte())) written += 1
  expect(written).toBe(65)
  expect(drained).toBe(0)

  while (stream.writableLength > 0) {
    read()
    await new Promise(setImmediate)
  }
  expect(drained).toBe(1)
  expect(Buffer.concat(taken).toString()).toBe('x'.repeat(65))
  expect(taken.slice(1).every(({ buffer }) => buffer.byteLength === 1)).toBe(true)
  expect(writes.write(byte())).toBe(true)
})
