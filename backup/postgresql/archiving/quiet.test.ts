import { expect, test } from 'vitest'
import { isQuietSince, parseSnapshot } from './quiet.ts'

const of = (text: string) => parseSnapshot(text) ?? { xmax: 0n, running: new Set<bigint>() }

test.each([
  { name: 'the mark alone has ended', before: '100:100:', mark: 100n, now: '101:101:', quiet: true },
  { name: 'another began after the mark, and still runs', before: '100:100:', mark: 100n, now: '101:101:', quiet: true },
  { name: 'one that ran before still runs', before: '90:100:90', mark: 100n, now: '90:101:90', quiet: true },
  { name: 'one that began before the mark still runs', before: '100:100:', mark: 101n, now: '100:102:100', quiet: true },
  { name: 'one that ran before has ended', before: '90:100:90', mark: 100n, now: '101:101:', quiet: false },
  { name: 'one ended between the snapshot and the mark', before: '100:100:', mark: 101n, now: '102:102:', quiet: false },
  { name: 'one ended after the mark', before: '100:100:', mark: 100n, now: '102:102:', quiet: false },
  { name: 'one of several after the mark has ended', before: '100:100:', mark: 100n, now: '101:103:101', quiet: false },
  { name: 'very many began since', before: '100:100:', mark: 100n, now: '100:900000:', quiet: false },
])('a database is quiet: $quiet, when $name', ({ before, mark, now, quiet }) => {
  expect(isQuietSince(of(before), mark, of(now))).toBe(quiet)
})

test('parseSnapshot returns undefined for other text', () => {
  expect(parseSnapshot('')).toBeUndefined()
  expect(parseSnapshot('1:2')).toBeUndefined()
  expect(parseSnapshot('10:20:10,14,15')).toEqual({ xmax: 20n, running: new Set([10n, 14n, 15n]) })
})
