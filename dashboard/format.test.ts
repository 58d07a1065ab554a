import { describe, expect, test } from 'vitest'
import { bytes, duration, percent, relative, shortNumber } from './format.ts'

test.each([
  [0, '0 B'],
  [1_023, '1023 B'],
  [1_024, '1.0 KiB'],
  [1_536, '1.5 KiB'],
  [200 * 1_024, '200 KiB'],
  [5 * 1_024 ** 3, '5.0 GiB'],
  [9_999 * 1_024 ** 4, '9999 TiB'],
])('bytes %i', (value, text) => {
  expect(bytes(value)).toBe(text)
})

test.each([
  [0.42, '0.4 ms'],
  [12.4, '12 ms'],
  [1_432, '1.4 s'],
  [185_000, '3 min 5 s'],
  [3_600_000, '1 h'],
  [7_440_000, '2 h 4 min'],
  [90_000_000, '1 d 1 h'],
])('duration %d', (ms, text) => {
  expect(duration(ms)).toBe(text)
})

test.each([
  ['2026-01-01T00:00:00.000Z', 'just now'],
  ['2025-12-31T23:59:48.000Z', '12 s ago'],
  ['2026-01-01T03:05:00.000Z', 'in 3 h 5 min'],
])('relative %s', (time, text) => {
  expect(relative(time, Date.UTC(2026, 0, 1))).toBe(text)
})

describe('shares and counts', () => {
  test.each([
    [0, 0, '0 %'],
    [1, 3, '33 %'],
    [1, 1_000, '< 1 %'],
    [999, 1_000, '> 99 %'],
    [5, 5, '100 %'],
  ])('percent %i of %i', (part, of, text) => {
    expect(percent(part, of)).toBe(text)
  })

  test('large numbers are short', () => {
    expect([9_999, 12_345, 1_234_567].map(shortNumber)).toEqual(['9,999', '12.3K', '1.2M'])
  })
})
