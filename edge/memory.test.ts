import { expect, test } from 'vitest'
import { compact, createLoadWatch } from './memory.ts'

/** Part of this size of a chunk that was read from a socket. */
const part = (length: number): Buffer => Buffer.alloc(64 * 1024).subarray(5, 5 + length)

test.each([1, 2_047])('%i bytes of a much larger buffer are copied', (length) => {
  expect(compact(part(length)).buffer.byteLength).toBe(length)
})

test('a part not much smaller than its buffer is not copied', () => {
  const large = part(2_048)
  expect(compact(large)).toBe(large)
})

test.each([
  { does: 'nothing without load', shares: [0.05, 0.19, 0, 0.1], ends: [] },
  { does: 'nothing while load goes on', shares: [0.3, 1.2, 0.4, 0.9], ends: [] },
  { does: 'finds the end of load once', shares: [1, 0, 0, 0], ends: [1] },
  { does: 'finds that load has fallen to little, once', shares: [0.5, 1, 0.21, 0.2, 0.15], ends: [2] },
  { does: 'finds the end of each load', shares: [1, 0, 0.3, 0.1, 0.05, 0], ends: [1, 4] },
])('$does', ({ shares, ends }) => {
  const found: number[] = []
  let index = 0
  const observe = createLoadWatch(() => found.push(index))
  for (index = 0; index < shares.length; index++) observe(shares[index] ?? 0)
  expect(found).toEqual(ends)
})
