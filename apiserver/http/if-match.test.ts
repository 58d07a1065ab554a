import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isExpected, parseIfMatch } from './if-match.ts'

test.each([
  { header: undefined, means: undefined },
  { header: '*', means: '*' },
  { header: ' * ', means: '*' },
  { header: '"727"', means: ['727'] },
  { header: '727', means: ['727'] },
  { header: '"1", "727"', means: ['1', '727'] },
  { header: '1,727', means: ['1', '727'] },
  { header: ', "1" ,, \t"2",', means: ['1', '2'] },
  { header: '"a,b", "\u00e9"', means: ['a,b', '\u00e9'] },
  { header: '""', means: [''] },
  { header: 'W/"727"', means: [] },
  { header: 'W/"1", "2"', means: ['2'] },
])('If-Match: $header accepts $means', ({ header, means }) => {
  expect(parseIfMatch(header)).toEqual(means)
})

test.each([
  '',
  ' ',
  ',',
  '"',
  '"1',
  'W/',
  'W/1',
  'w/"1"',
  '"1" "2"',
  '"1""2"',
  '1"2"',
  '"a b"',
  '"1", *',
  '*, *',
  '1;2',
  '"\u0000"',
])('If-Match: %j is rejected with its name', (header) => {
  expect(() => parseIfMatch(header)).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: [expect.objectContaining({ field: 'If-Match' })] }),
  )
})

test('a list of tags gives its strong tags, unchanged', () => {
  const opaque = fc.stringMatching(/^[\x21\x23-\x7e\x80-\xff]*$/)
  const tags = fc.array(fc.record({ opaque, isWeak: fc.boolean() }), { minLength: 1 })
  fc.assert(
    fc.property(tags, fc.constantFrom(',', ', ', ' ,\t', ',,'), (all, comma) => {
      const header = all.map(({ opaque: text, isWeak }) => `${isWeak ? 'W/' : ''}"${text}"`).join(comma)
      expect(parseIfMatch(header)).toEqual(all.flatMap(({ opaque: text, isWeak }) => (isWeak ? [] : [text])))
    }),
  )
})

test.each([
  { version: '7', ifMatch: undefined, is: true },
  { version: undefined, ifMatch: undefined, is: true },
  { version: '7', ifMatch: '*', is: true },
  { version: undefined, ifMatch: '*', is: false },
  { version: '7', ifMatch: ['6', '7'], is: true },
  { version: '7', ifMatch: ['6'], is: false },
  { version: '7', ifMatch: [], is: false },
  { version: undefined, ifMatch: ['7'], is: false },
] as const)('that $version is expected by $ifMatch is $is', ({ version, ifMatch, is }) => {
  expect(isExpected(version, ifMatch)).toBe(is)
})
