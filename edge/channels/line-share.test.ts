import { expect, test } from 'vitest'
import { LineShare } from './line-share.ts'

test('counts the channels that were given room within the last moments, each once', () => {
  const share = new LineShare()
  const [a, b, c] = [{}, {}, {}]
  expect([share.drawing(a, 0), share.drawing(b, 10), share.drawing(a, 20), share.drawing(c, 30)]).toEqual([1, 2, 2, 3])
})

test('forgets those who have stopped, and not those who are in between', () => {
  const share = new LineShare()
  const [a, b] = [{}, {}]
  share.drawing(a, 0)
  share.drawing(b, 10)
  // The next span has just begun: the last one's count holds.
  expect(share.drawing(a, 55)).toBe(2)
  expect(share.drawing(a, 110)).toBe(1)
  share.drawing(b, 120)
  // Nothing for a long time: the last count says nothing.
  expect(share.drawing(a, 10_000)).toBe(1)
})
