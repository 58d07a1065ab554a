import { type Backoff, backoffMs } from '../../shared/backoff.ts'
import type { Attempt } from './exchange.ts'

export interface RetryFacts {
  /** Doing it twice is the same as doing it once. */
  readonly idempotent: boolean
  /** Tries so far, this one included. */
  readonly tries: number
  readonly random: () => number
}

const MOST_TRIES = 5
const BACKOFF: Backoff = { baseMs: 100, maxMs: 2_000 }
/** Server trouble that may be over at the next try. */
const PASSING = new Set([500, 502, 503, 504])

/**
 * Milliseconds after which to try again, undefined when the attempt is final. What was not begun with (no connection, a refused
 * stream, 429, 401) may be tried again whatever it is; what may have been done, only when doing it twice does no harm.
 */
export function retryMs(attempt: Attempt, { idempotent, tries, random }: RetryFacts): number | undefined {
  if (tries >= MOST_TRIES) return undefined
  const pause = backoffMs(BACKOFF, tries, random)
  if (attempt.type === 'failed') return idempotent || !attempt.arrived ? pause : undefined
  // New credentials, once: others will not be better a moment later.
  if (attempt.status === 401) return tries === 1 ? 0 : undefined
  return isPassing(attempt.status, idempotent) ? (attempt.retryAfterMs ?? pause) : undefined
}

const isPassing = (status: number, idempotent: boolean): boolean => status === 429 || (idempotent && PASSING.has(status))
