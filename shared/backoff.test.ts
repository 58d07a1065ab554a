import fc from 'fast-check'
import { expect, test } from 'vitest'
import { backoffMs } from './backoff.ts'

const backoff = { baseMs: 50, maxMs: 60_000 }

test.each([
  { failures: 1, least: 25, most: 50 },
  { failures: 2, least: 50, most: 100 },
  { failures: 11, least: 25_600, most: 51_200 },
  { failures: 12, least: 30_000, most: 60_000 },
  { failures: 5000, least: 30_000, most: 60_000 },
])('backoffMs returns $least to $most ms after $failures failures', ({ failures, least, most }) => {
  expect(backoffMs(backoff, failures, () => 0)).toBe(least)
  expect(backoffMs(backoff, failures, () => 1)).toBe(most)
})

test('backoffMs doubles the delay after each failure, up to maxMs', () => {
  const waits = [1, 2, 3, 4, 5, 60].map((failures) => backoffMs({ baseMs: 100, maxMs: 1_000 }, failures, () => 1))
  expect(waits).toEqual([100, 200, 400, 800, 1_000, 1_000])
})

test('the upper half of a delay is random', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2_000 }), fc.double({ min: 0, max: 1, noNaN: true }), (failures, random) => {
      const [least, most] = [0, 1].map((end) => backoffMs({ baseMs: 100, maxMs: 1_000 }, failures, () => end))
      const wait = backoffMs({ baseMs: 100, maxMs: 1_000 }, failures, () => random)
      expect(wait).toBeGreaterThanOrEqual(least ?? NaN)
      expect(wait).toBeLessThanOrEqual(most ?? NaN)
    }),
  )
})
