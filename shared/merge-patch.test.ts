import { expect, test } from 'vitest'
import { replacing } from './merge-patch.ts'

test.each([
  { does: 'keeps what is the same', before: { a: 1 }, after: { a: 1 }, patch: { a: 1 } },
  { does: 'removes what is gone', before: { a: 1, b: 2 }, after: { a: 1 }, patch: { a: 1, b: null } },
  { does: 'removes what is undefined', before: { a: 1 }, after: { a: undefined }, patch: { a: null } },
  { does: 'goes into objects', before: { a: { b: 1 } }, after: { a: { c: 2 } }, patch: { a: { b: null, c: 2 } } },
  { does: 'replaces lists whole', before: { a: [1, 2] }, after: { a: [3] }, patch: { a: [3] } },
  { does: 'begins with nothing', before: undefined, after: { a: { b: 1 } }, patch: { a: { b: 1 } } },
])('a merge patch $does', ({ before, after, patch }) => {
  expect(replacing(before, after)).toEqual(patch)
})
