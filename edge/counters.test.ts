import { expect, test } from 'vitest'
import { MinuteCounter, sourceKey } from './counters.ts'

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

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::7', '2001:db8:0:0'],
  ['2001:db8:1:2::7', '2001:db8:1:2'],
])('%s is counted under %s', (address, key) => {
  expect(sourceKey(address)).toBe(key)
})
