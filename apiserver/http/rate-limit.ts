import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { DEFAULT_QUOTAS, type Quotas } from '../../process/setting-rules.ts'
import { ApiError } from './errors.ts'

/** Rates of a principal and quotas of a namespace (docs/api.md, "Rate limits and quotas"). */
export interface ApiLimits extends Quotas {
  /** Sustained reads of a principal per second. */
  readonly readRate: number
  readonly readBurst: number
  readonly writeRate: number
  readonly writeBurst: number
  /** Failed authentications of one source address per minute. */
  readonly failedAuthPerMinute: number
  readonly quotaApiTokens: number
}

/** Default limits; the chart's values are equal. */
export const DEFAULT_LIMITS: ApiLimits = {
  ...DEFAULT_QUOTAS,
  readRate: 100,
  readBurst: 200,
  writeRate: 20,
  writeBurst: 40,
  failedAuthPerMinute: 20,
  quotaApiTokens: 20,
}

/** Allowance of a key: `burst` requests at once, `perSecond` sustained. */
export interface Rate {
  readonly perSecond: number
  readonly burst: number
}

/**
 * Seconds after which the full burst is available again. The sustained rate is therefore `perSecond` + (`burst` − `perSecond`) / 10. A shorter window
 * would allow more; a longer one would delay the next burst.
 */
const BURST_WINDOW_S = 10

export type RateLimitHeaders = Readonly<Record<'RateLimit-Limit' | 'RateLimit-Remaining' | 'RateLimit-Reset', string>>

/** Counts one request of `key`. @throws ApiError `rate_limited` with `Retry-After` and the headers it otherwise returns */
export type RateLimiter = (key: string) => Promise<RateLimitHeaders>

/** Creates a limiter with a fixed window of one second and a burst allowance with its own window. In memory: each process counts separately. */
export function createRateLimiter({ perSecond, burst }: Rate): RateLimiter {
  const steady = new RateLimiterMemory({ points: perSecond, duration: 1 })
  const extra = new RateLimiterMemory({ points: burst - perSecond, duration: BURST_WINDOW_S })

  return async function limit(key) {
    const first = await tryConsume(steady, key)
    if (first.granted) {
      const left = (await extra.get(key))?.remainingPoints ?? burst - perSecond
      return headersOf(burst, first.remainingPoints + left, first.msBeforeNext)
    }
    const second = await tryConsume(extra, key)
    if (second.granted) return headersOf(burst, second.remainingPoints, first.msBeforeNext)
    throw rateLimited('too many requests', first.msBeforeNext, burst)
  }
}

/** Creates the counter of failed authentications per source. @throws (from the function) ApiError `rate_limited` past `perMinute` */
export function createFailureLimiter(perMinute: number): (source: string) => Promise<void> {
  const failures = new RateLimiterMemory({ points: perMinute, duration: 60 })
  return async function countFailure(source) {
    const { granted, msBeforeNext } = await tryConsume(failures, source)
    if (!granted) throw rateLimited('too many failed authentications', msBeforeNext, perMinute)
  }
}

function headersOf(limit: number, remaining: number, resetMs: number): RateLimitHeaders {
  return {
    'RateLimit-Limit': String(limit),
    'RateLimit-Remaining': String(remaining),
    'RateLimit-Reset': String(Math.ceil(resetMs / 1e3)),
  }
}

function rateLimited(what: string, waitMs: number, limit: number): ApiError {
  const seconds = Math.max(1, Math.ceil(waitMs / 1e3))
  return new ApiError('rate_limited', `${what}: try again in ${seconds} s`, {
    headers: { ...headersOf(limit, 0, waitMs), 'Retry-After': String(seconds) },
  })
}

async function tryConsume(limiter: RateLimiterMemory, key: string) {
  try {
    const { remainingPoints, msBeforeNext } = await limiter.consume(key)
    return { granted: true, remainingPoints, msBeforeNext }
  } catch (rejection) {
    if (!(rejection instanceof RateLimiterRes)) throw rejection
    return { granted: false, remainingPoints: 0, msBeforeNext: rejection.msBeforeNext }
  }
}
