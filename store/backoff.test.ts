import { expect, test } from 'vitest'
import { backoffMs } from './backoff.ts'

const backoff = { baseMs: 50, maxMs: 60_000 }

test.each([
  { failures: 1, least: 25, most: 50 },
  { failures: 2, least: 50, most: 100 },
  { failures: 11, least: 25_600, most: 51_200 },
  { failures: 12, least: 30_000, most: 60_000 },
  { failures: 5000, least: 30_000, most: 60_000 },
])('after $failures failures one waits $least to $most ms', ({ failures, least, most }) => {
  expect(backoffMs(backoff, failures, () => 0)).toBe(least)
  expect(backoffMs(backoff, failures, () => 1)).toBe(most)
})
