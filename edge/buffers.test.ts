import { expect, test } from 'vitest'
import { compact } from './buffers.ts'

/** Part of this size of a chunk that was read from a socket. */
const part = (length: number): Buffer => Buffer.alloc(64 * 1024).subarray(5, 5 + length)

test.each([1, 2_047])('%i bytes of a much larger buffer are copied', (length) => {
  expect(compact(part(length)).buffer.byteLength).toBe(length)
})

test('a part not much smaller than its buffer is not copied', () => {
  const large = part(2_048)
  expect(compact(large)).toBe(large)
})
