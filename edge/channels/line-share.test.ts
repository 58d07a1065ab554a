import { expect, test } from 'vitest'
import { LineShare } from './line-share.ts'

test('counts each channel that was granted window recently, once', () => {
  const share = new LineShare()
  const [a, b, c] = [{}, {}, {}]
  expect([share.drawing(a, 0), share.drawing(b, 10), share.drawing(a, 20), share.drawing(c, 30)]).toEqual([1, 2, 2, 3])
})

test('drops channels that stopped, and keeps those between two grants', () => {
  const share = new LineShare()
  const [a, b] = [{}, {}]
  share.drawing(a, 0)
  share.drawing(b, 10)
  // The next span has just begun: the last one's count holds.
  expect(share.drawing(a, 55)).toBe(2)
  expect(share.drawing(a, 110)).toBe(1)
  share.drawing(b, 120)
  // After a long pause the last count is outdated.
  expect(share.drawing(a, 10_000)).toBe(1)
})
