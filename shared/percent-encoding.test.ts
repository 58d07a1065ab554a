import fc from 'fast-check'
import { expect, test } from 'vitest'
import { percentEncoded } from './percent-encoding.ts'

test.each([
  { text: '/a?b=%41 "<>\\^{|}~', encoded: '/a?b=%41 "<>\\^{|}~' },
  { text: '/a\x1b]0;pwned\x07b', encoded: '/a%1B]0;pwned%07b' },
  { text: '/\xc3\xa4\x9b\x7f\n\0', encoded: '/%C3%A4%9B%7F%0A%00' },
])('$encoded', ({ text, encoded }) => {
  expect(percentEncoded(text)).toBe(encoded)
})

test('encoded text is printable ASCII, and encoding it again changes nothing', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const encoded = percentEncoded(text)
      expect(encoded).toMatch(/^[\x20-\x7e]*$/)
      expect(percentEncoded(encoded)).toBe(encoded)
    }),
  )
})
