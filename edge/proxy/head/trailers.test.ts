import { expect, test } from 'vitest'
import { readTrailers } from './trailers.ts'

test('a trailer section has 8 KiB at the most, in whichever version of HTTP it comes', () => {
  const lines = (length: number) => `a: ${'b'.repeat(length - 'a: \r\n'.length)}\r\n`
  expect(readTrailers(lines(8_192))).toBeDefined()
  expect(readTrailers(lines(8_193))).toBeUndefined()
})
