import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTail } from './live-tail.ts'

const idOf = (number: number) => String(number).padStart(6, '0')
const items = (...ids: readonly number[]) => ids.map((id) => ({ id: idOf(id) }))
const idsOf = (list: readonly { id: string }[]) => list.map(({ id }) => Number(id))

test('the newest items come first, and at most `kept` stay', () => {
  const tail = createTail<{ id: string }>(3)
  tail.seed(items(2, 1))
  for (const item of items(3, 4)) tail.push(item)
  expect(idsOf(tail.shown)).toEqual([2, 1])
  expect(tail.flush()).toBe(true)
  expect(idsOf(tail.shown)).toEqual([4, 3, 2])
  expect(tail.flush()).toBe(false)
})

test('an item that arrives after a later one shows at its place by id', () => {
  const tail = createTail<{ id: string }>(3)
  for (const item of items(2, 4, 3)) tail.push(item)
  tail.flush()
  expect(idsOf(tail.shown)).toEqual([4, 3, 2])
  for (const item of items(6, 1)) tail.push(item)
  tail.flush()
  expect(idsOf(tail.shown)).toEqual([6, 4, 3])
  tail.seed(items(5))
  expect(idsOf(tail.shown)).toEqual([6, 5, 4])
})

test('an item that the log and the stream both have shows once', () => {
  const tail = createTail<{ id: string }>()
  for (const item of items(3, 4)) tail.push(item)
  tail.seed(items(4, 3, 2))
  tail.flush()
  expect(idsOf(tail.shown)).toEqual([4, 3, 2])
  for (const item of items(3)) tail.push(item)
  tail.flush()
  expect(idsOf(tail.shown)).toEqual([4, 3, 2])
})

test('a paused tail shows nothing new, counts what arrives, and continues with the newest', () => {
  const tail = createTail<{ id: string }>(2)
  tail.pause(true)
  for (const item of items(1, 2, 3)) tail.push(item)
  expect([tail.flush(), tail.shown.length, tail.missed]).toEqual([false, 0, 3])
  tail.pause(false)
  tail.flush()
  expect([idsOf(tail.shown), tail.missed]).toEqual([[3, 2], 0])
})

test('memory is bounded whatever arrives between two frames', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 2_000 }), { maxLength: 20 }), (bursts) => {
      const tail = createTail<{ id: string }>(50)
      let id = 0
      for (const burst of bursts) {
        for (let sent = 0; sent < burst; sent++) tail.push({ id: idOf(id++) })
        tail.flush()
        expect(tail.shown.length).toBeLessThanOrEqual(50)
        expect(idsOf(tail.shown)[0] ?? -1).toBe(id - 1)
      }
    }),
    { numRuns: 30 },
  )
})
