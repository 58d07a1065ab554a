import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isNewer, PROGRAM_VERSION } from './version.ts'

test('PROGRAM_VERSION has three numbers', () => {
  expect(PROGRAM_VERSION).toMatch(/^\d+\.\d+\.\d+/)
})

test.each([
  { a: '0.2.0', b: '0.1.9', newer: true },
  { a: '0.10.0', b: '0.9.0', newer: true },
  { a: '1.0.0', b: '1.0.0', newer: false },
  { a: '1.0.0-rc.1', b: '1.0.0', newer: false },
  { a: '0.9.0', b: '1.0.0', newer: false },
  { a: '0.0.0', b: 'nonsense', newer: true },
  { a: 'nonsense', b: '0.0.0', newer: false },
  { a: 'nonsense', b: '', newer: false },
])('$a is newer than $b: $newer', ({ a, b, newer }) => {
  expect(isNewer(a, b)).toBe(newer)
})

test('of any two texts, at most one is newer', () => {
  const version = fc.oneof(
    fc.string(),
    fc.tuple(fc.nat(99), fc.nat(99), fc.nat(99)).map((parts) => parts.join('.')),
  )
  fc.assert(fc.property(version, version, (a, b) => !(isNewer(a, b) && isNewer(b, a))))
})
