import { expect, test } from 'vitest'
import { NoticeLimit } from './terminal.ts'

test('a line is shown once in 10 s', () => {
  const limit = new NoticeLimit()
  expect([0, 1, 9_999, 10_000, 10_001].map((now) => limit.take('a', now))).toEqual([true, false, false, true, false])
  expect(limit.take('b', 10_001)).toBe(true)
})

test('at most 10 lines are shown in a minute', () => {
  const limit = new NoticeLimit()
  const taken = Array.from({ length: 100 }, (_, index) => limit.take(`line ${index}`, index))
  expect(taken.filter(Boolean)).toHaveLength(10)
  expect(limit.take('later', 59_999)).toBe(false)
  expect(limit.take('later', 60_000)).toBe(true)
})
