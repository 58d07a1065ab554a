import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createSampled } from './sampled.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a sampled stream sends so many events a second, and then the count of the others', () => {
  const sent: unknown[] = []
  const sampled = createSampled(({ id, event, data }) => sent.push([id, event, data]), 2)
  const offer = (...ids: readonly string[]) => ids.forEach((id) => sampled.offer(() => ({ id, event: 'request', data: id })))
  offer('a', 'b', 'c', 'd', 'e')
  expect(sent.splice(0)).toEqual([
    ['a', 'request', 'a'],
    ['b', 'request', 'b'],
  ])
  vi.advanceTimersByTime(1_000)
  expect(sent.splice(0)).toEqual([['b', 'skipped', { count: 3 }]])
  offer('f')
  vi.advanceTimersByTime(5_000)
  expect(sent).toEqual([['f', 'request', 'f']])
  sampled.stop()
  expect(vi.getTimerCount()).toBe(0)
})
