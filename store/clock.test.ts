import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { pause, systemClock } from './clock.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const DAY_MS = 86_400_000

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
