import fc from 'fast-check'
import { expect, test } from 'vitest'
import { backOffMs } from './back-off.ts'

test('waits twice as long each time, up to a bound', () => {
  const waits = [1, 2, 3, 4, 5, 60].map((failures) => backOffMs({ firstMs: 100, lastMs: 1_000 }, failures, () => 1))
  expect(waits).toEqual([100, 200, 400, 800, 1_000, 1_000])
})

test('the upper half of a wait is random', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2_000 }), fc.double({ min: 0, max: 1, noNaN: true }), (failures, random) => {
      const [least, most] = [0, 1].map((end) => backOffMs({ firstMs: 100, lastMs: 1_000 }, failures, () => end))
      const wait = backOffMs({ firstMs: 100, lastMs: 1_000 }, failures, () => random)
      expect(wait).toBeGreaterThanOrEqual(least ?? NaN)
      expect(wait).toBeLessThanOrEqual(most ?? NaN)
    }),
  )
})
