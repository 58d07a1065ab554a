import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { backoffMs, pause, systemClock } from './timers.ts'

const DAY_MS = 86_400_000
const backoff = { baseMs: 50, maxMs: 60_000 }

test.each([
  { failures: 1, least: 25, most: 50 },
  { failures: 2, least: 50, most: 100 },
  { failures: 11, least: 25_600, most: 51_200 },
  { failures: 12, least: 30_000, most: 60_000 },
  { failures: 5000, least: 30_000, most: 60_000 },
])('backoffMs returns $least to $most ms after $failures failures', ({ failures, least, most }) => {
  expect(backoffMs(backoff, failures, () => 0)).toBe(least)
  expect(backoffMs(backoff, failures, () => 1)).toBe(most)
})

test('backoffMs doubles the delay after each failure, up to maxMs', () => {
  const waits = [1, 2, 3, 4, 5, 60].map((failures) => backoffMs({ baseMs: 100, maxMs: 1_000 }, failures, () => 1))
  expect(waits).toEqual([100, 200, 400, 800, 1_000, 1_000])
})

test('the upper half of a delay is random', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2_000 }), fc.double({ min: 0, max: 1, noNaN: true }), (failures, random) => {
      const [least, most] = [0, 1].map((end) => backoffMs({ baseMs: 100, maxMs: 1_000 }, failures, () => end))
      const wait = backoffMs({ baseMs: 100, maxMs: 1_000 }, failures, () => random)
      expect(wait).toBeGreaterThanOrEqual(least ?? NaN)
      expect(wait).toBeLessThanOrEqual(most ?? NaN)
    }),
  )
})

describe('with fake timers', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test.each([{ ms: 1 }, { ms: 50.5 }, { ms: 30 * DAY_MS }, { ms: 100 * DAY_MS }])(
    'a timer of $ms ms fires once, and not before',
    ({ ms }) => {
      const start = systemClock.now()
      const fired: number[] = []
      systemClock.after(ms, () => fired.push(systemClock.now() - start))
      vi.advanceTimersByTime(Math.max(0, Math.ceil(ms) - 1))
      expect(fired).toEqual([])
      vi.advanceTimersByTime(200 * DAY_MS)
      expect(fired).toEqual([Math.ceil(ms)])
    },
  )

  test('a cancelled timer does not fire, also after its first interval', () => {
    let fired = false
    const cancel = systemClock.after(60 * DAY_MS, () => (fired = true))
    vi.advanceTimersByTime(30 * DAY_MS)
    cancel()
    vi.advanceTimersByTime(200 * DAY_MS)
    expect(fired).toBe(false)
  })

  test('a pause ends at its timeout or when its signal aborts, and leaves no timer', async () => {
    const stop = new AbortController()
    const short = pause(systemClock, 10, stop.signal)
    vi.advanceTimersByTime(10)
    await short
    const long = pause(systemClock, DAY_MS, stop.signal)
    stop.abort()
    await long
    await pause(systemClock, DAY_MS, stop.signal)
    expect(vi.getTimerCount()).toBe(0)
  })
})
