import fc from 'fast-check'
import { expect, test } from 'vitest'
import { median, quantile, ratio, summary } from './statistics.ts'

test.each([
  { samples: [5], share: 0.5, is: 5 },
  { samples: [4, 1, 3, 2], share: 0.5, is: 2 },
  { samples: [4, 1, 3, 2], share: 1, is: 4 },
  { samples: Array.from({ length: 200 }, (_, index) => index + 1), share: 0.99, is: 198 },
])('quantile returns $is for share $share of $samples.length samples', ({ samples, share, is }) =>
  expect(quantile(samples, share)).toBe(is),
)

test('median throws RangeError without samples', () => expect(() => median([])).toThrow(RangeError))

test('median has at least half of the samples at or below it, and at least half at or above it', () => {
  fc.assert(
    fc.property(fc.array(fc.integer(), { minLength: 1 }), (samples) => {
      const middle = median(samples)
      const half = samples.length / 2
      expect(samples.filter((sample) => sample <= middle).length).toBeGreaterThanOrEqual(half)
      expect(samples.filter((sample) => sample >= middle).length).toBeGreaterThanOrEqual(half)
    }),
  )
})

test('summary keeps median and spread when one sample becomes an outlier', () => {
  expect(summary([10, 11, 12, 13, 14])).toMatchObject({ median: 12, mad: 1 })
  expect(summary([10, 11, 12, 13, 999])).toMatchObject({ median: 12, mad: 1 })
})

test('ratio compares medians by blocks, so that a disturbance of both sides does not change it', () => {
  const quiet = { of: [1, 1, 1], to: [2, 2, 2] }
  const disturbed = { of: [10, 10, 10], to: [20, 20, 20] }
  expect(ratio([...quiet.of, ...disturbed.of, 7], [...quiet.to, ...disturbed.to, 7], 3)).toEqual({
    median: 0.5,
    low: 0.5,
    high: 0.5,
  })
})
