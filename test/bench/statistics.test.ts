import fc from 'fast-check'
import { expect, test } from 'vitest'
import { median, quantile, ratio, summary } from './statistics.ts'

test.each([
  { samples: [5], share: 0.5, is: 5 },
  { samples: [4, 1, 3, 2], share: 0.5, is: 2 },
  { samples: [4, 1, 3, 2], share: 1, is: 4 },
  { samples: Array.from({ length: 200 }, (_, index) => index + 1), share: 0.99, is: 198 },
])('the $share quantile of $samples.length samples is $is', ({ samples, share, is }) => expect(quantile(samples, share)).toBe(is))

test('no samples have no quantile', () => expect(() => median([])).toThrow(RangeError))

test('at least half of the samples do not exceed the median, and at least half are not below it', () => {
  fc.assert(
    fc.property(fc.array(fc.integer(), { minLength: 1 }), (samples) => {
      const middle = median(samples)
      const half = samples.length / 2
      expect(samples.filter((sample) => sample <= middle).length).toBeGreaterThanOrEqual(half)
      expect(samples.filter((sample) => sample >= middle).length).toBeGreaterThanOrEqual(half)
    }),
  )
})

test('the spread does not move with one outlier', () => {
  expect(summary([10, 11, 12, 13, 14])).toMatchObject({ median: 12, mad: 1 })
  expect(summary([10, 11, 12, 13, 999])).toMatchObject({ median: 12, mad: 1 })
})

test('a ratio is one of medians, by blocks, and a disturbance that hits both sides leaves it alone', () => {
  const quiet = { of: [1, 1, 1], to: [2, 2, 2] }
  const disturbed = { of: [10, 10, 10], to: [20, 20, 20] }
  expect(ratio([...quiet.of, ...disturbed.of, 7], [...quiet.to, ...disturbed.to, 7], 3)).toEqual({
    median: 0.5,
    low: 0.5,
    high: 0.5,
  })
})
