import { type Backoff, backoffMs } from '../../shared/backoff.ts'
import type { Attempt } from './exchange.ts'

/** Input of {@link retryMs}. */
export interface RetryInput {
  /** Whether repeating the request has no further effect. */
  readonly idempotent: boolean
  /** Number of attempts so far, including this one. */
  readonly tries: number
  readonly random: () => number
}

const MOST_TRIES = 5
const BACKOFF: Backoff = { baseMs: 100, maxMs: 2_000 }
/** Status of server errors that may be temporary. */
const TEMPORARY = new Set([500, 502, 503, 504])

/**
 * Returns the delay before the next attempt in milliseconds, undefined when there is none. A request that was not processed (no connection,
 * a refused stream, 429, 401) may always be repeated; a request that may have been processed, only when it is idempotent.
 */
export function retryMs(attempt: Attempt, { idempotent, tries, random }: RetryInput): number | undefined {
  if (tries >= MOST_TRIES) return undefined
  const pause = backoffMs(BACKOFF, tries, random)
  if (attempt.type === 'failed') return idempotent || !attempt.arrived ? pause : undefined
  // One retry with new credentials: reading them again a moment later would not help.
  if (attempt.status === 401) return tries === 1 ? 0 : undefined
  return isTemporary(attempt.status, idempotent) ? (attempt.retryAfterMs ?? pause) : undefined
}

const isTemporary = (status: number, idempotent: boolean): boolean => status === 429 || (idempotent && TEMPORARY.has(status))
