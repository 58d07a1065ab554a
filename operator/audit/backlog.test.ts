import { expect, test } from 'vitest'
import { Backlog } from './backlog.ts'

/** Backlog of the items 0 to n - 1, each due at the time of its number. */
function backlogOf(count: number): Backlog<number> {
  const backlog = new Backlog<number>()
  for (let item = 0; item < count; item += 1) backlog.add(item, item)
  return backlog
}

test.each([
  { does: 'nothing before its time', now: -1, most: 9, taken: [] },
  { does: 'the items that are due', now: 2, most: 9, taken: [0, 1, 2] },
  { does: 'the oldest items, up to the limit', now: 2, most: 2, taken: [0, 1] },
  { does: 'all items', now: 9, most: 9, taken: [0, 1, 2, 3] },
])('a backlog gives $does', ({ now, most, taken }) => {
  const backlog = backlogOf(4)
  expect(backlog.take(now, most)).toEqual(taken)
  expect(backlog.size).toBe(4 - taken.length)
})

test('items that are put back come first, and no item is given before their new time', () => {
  const backlog = backlogOf(4)
  const taken = backlog.take(1, 9)
  backlog.add(4, 4)
  backlog.putBack(taken, 7)
  expect(backlog.take(6, 9)).toEqual([])
  expect(backlog.take(7, 9)).toEqual([0, 1, 2, 3, 4])
})

test('trim drops the oldest items and counts them', () => {
  const backlog = backlogOf(10)
  expect([backlog.trim(10), backlog.trim(3), backlog.size]).toEqual([0, 7, 3])
  expect(backlog.take(9, 9)).toEqual([7, 8, 9])
})
