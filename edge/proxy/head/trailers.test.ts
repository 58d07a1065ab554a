import { expect, test } from 'vitest'
import { readTrailers } from './trailers.ts'

test('a trailer section has at most 8 KiB in each version of HTTP', () => {
  const lines = (length: number) => `a: ${'b'.repeat(length - 'a: \r\n'.length)}\r\n`
  expect(readTrailers(lines(8_192))).toBeDefined()
  expect(readTrailers(lines(8_193))).toBeUndefined()
})
