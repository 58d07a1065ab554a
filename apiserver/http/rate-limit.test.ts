import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createFailureLimiter, createRateLimiter, DEFAULT_LIMITS, type RateLimiter } from './rate-limit.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Sends `count` requests and returns the number of granted ones. */
async function granted(limit: RateLimiter, count: number, key = 'alice'): Promise<number> {
  const results = await Promise.allSettled(Array.from({ length: count }, () => limit(key)))
  return results.filter(({ status }) => status === 'fulfilled').length
}

describe.each([
  { what: 'writes', rate: { perSecond: DEFAULT_LIMITS.writeRate, burst: DEFAULT_LIMITS.writeBurst } },
  { what: 'reads', rate: { perSecond: DEFAULT_LIMITS.readRate, burst: DEFAULT_LIMITS.readBurst } },
])('the limit of $what', ({ rate }) => {
  test('grants exactly a burst', async () => {
    expect(await granted(createRateLimiter(rate), rate.burst + 1)).toBe(rate.burst)
  })

  test('grants the steady rate, evenly spread or at the start of each second', async () => {
    const evenly = createRateLimiter(rate)
    for (let at = 0; at < 60 * rate.perSecond; at++) {
      expect(await granted(evenly, 1)).toBe(1)
      vi.advanceTimersByTime(1e3 / rate.perSecond)
    }
    const bunched = createRateLimiter(rate)
    for (let second = 0; second < 60; second++) {
      expect(await granted(bunched, rate.perSecond)).toBe(rate.perSecond)
      vi.advanceTimersByTime(1e3)
    }
  })

  test('grants at most a tenth more than the steady rate over a minute', async () => {
    const limit = createRateLimiter(rate)
    let sum = 0
    for (let tenth = 0; tenth < 600; tenth++) {
      sum += await granted(limit, rate.perSecond)
      vi.advanceTimersByTime(100)
    }
    expect(sum).toBeLessThanOrEqual(60 * rate.perSecond * 1.1 + rate.burst)
  })

  test('restores the burst, and counts each principal separately', async () => {
    const limit = createRateLimiter(rate)
    expect(await granted(limit, rate.burst + 10)).toBe(rate.burst)
    expect(await granted(limit, rate.burst, 'bob')).toBe(rate.burst)
    vi.advanceTimersByTime(10_000)
    expect(await granted(limit, rate.burst + 10)).toBe(rate.burst)
  })

  test('returns the remaining requests and the time of the reset', async () => {
    const limit = createRateLimiter(rate)
    expect(await limit('alice')).toEqual({
      'RateLimit-Limit': String(rate.burst),
      'RateLimit-Remaining': String(rate.burst - 1),
      'RateLimit-Reset': '1',
    })
    await granted(limit, rate.burst - 1)
    await expect(limit('alice')).rejects.toMatchObject({
      code: 'rate_limited',
      headers: { 'Retry-After': '1', 'RateLimit-Remaining': '0' },
    })
    vi.advanceTimersByTime(1_000)
    expect(await granted(limit, 1)).toBe(1)
  })
})

test('failures of a source past the limit are rejected until the minute is over', async () => {
  const count = createFailureLimiter(2)
  await count('192.0.2.1')
  await count('192.0.2.1')
  const headers = { 'Retry-After': '60', 'RateLimit-Limit': '2', 'RateLimit-Remaining': '0', 'RateLimit-Reset': '60' }
  await expect(count('192.0.2.1')).rejects.toMatchObject({ code: 'rate_limited', headers })
  await count('192.0.2.2')
  vi.advanceTimersByTime(60_000)
  await count('192.0.2.1')
})
