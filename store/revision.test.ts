import { expect, test } from 'vitest'
import { isOlder } from './revision.ts'

test.each([
  { a: '9', b: '10', older: true },
  { a: '10', b: '9', older: false },
  { a: '10', b: '10', older: false },
  { a: '9007199254740993', b: '9007199254740994', older: true },
  { a: '09', b: '10', older: false },
  { a: 'a', b: 'b', older: false },
  { a: '', b: '1', older: false },
])('$a is older than $b: $older', ({ a, b, older }) => {
  expect(isOlder(a, b)).toBe(older)
})
