import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KeptBytes } from './receive-queue.ts'

/** Chunk as read from a socket, decrypted in place. */
const READ_BYTES = 64 * 1024

/** Part of a chunk. */
const part = (length: number, value = 1): Buffer => Buffer.alloc(READ_BYTES, value).subarray(5, 5 + length)

/** Memory that buffers keep, in bytes. */
const heldBy = (buffers: readonly Buffer[]): number =>
  [...new Set(buffers.map(({ buffer }) => buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0)

function drain(kept: KeptBytes): readonly Buffer[] {
  const blocks: Buffer[] = []
  for (let block = kept.take(); block; block = kept.take()) blocks.push(block)
  return blocks
}

test('bytes come out in order, whatever their chunks, and are counted', () => {
  const step = fc.oneof(fc.nat(40_000), fc.nat(20), fc.constant('take' as const))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const kept = new KeptBytes()
      const [given, taken]: Buffer[][] = [[], []]
      for (const [index, next] of steps.entries()) {
        if (next === 'take') taken?.push(kept.take() ?? Buffer.alloc(0))
        else {
          given?.push(part(next, index))
          kept.add(part(next, index))
        }
      }
      const [all, out] = [Buffer.concat(given ?? []), Buffer.concat(taken ?? [])]
      expect(kept.length).toBe(all.length - out.length)
      expect(Buffer.concat([out, ...drain(kept)]).equals(all)).toBe(true)
      expect(kept.length).toBe(0)
    }),
    { numRuns: 200 },
  )
})

test.each([1, 100, 3_000, 16_383, 16_384, 32_768])('chunks of %i bytes take little more memory than their size', (length) => {
  const kept = new KeptBytes()
  const count = Math.min(4_000, Math.max(64, Math.ceil(65_536 / length)))
  for (let index = 0; index < count; index += 1) kept.add(part(length))
  expect(heldBy(drain(kept))).toBeLessThanOrEqual(4 * count * length + 1_024)
})

test('a cleared queue is empty', () => {
  const kept = new KeptBytes()
  kept.add(part(3))
  kept.clear()
  expect([kept.length, kept.take()]).toEqual([0, undefined])
})
