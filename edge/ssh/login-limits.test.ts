import { expect, test } from 'vitest'
import { MinuteCounter } from './login-limits.ts'

test('a counter reaches its limit per key, until the minute is over', () => {
  let now = 0
  const counter = new MinuteCounter(2, () => now)
  counter.add('a')
  expect(counter.reached('a')).toBe(false)
  now = 59_999
  counter.add('a')
  expect([counter.reached('a'), counter.reached('b')]).toEqual([true, false])
  now = 60_000
  expect(counter.reached('a')).toBe(false)
})
