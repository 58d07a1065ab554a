import type { DeliveryRecord, FailureStreak } from '../../journal/webhooks.ts'
import type { DisabledReason } from '../../crds/tunnel-webhook.ts'
import { retryAfterMs } from '../../shared/retry-after.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** Delays after failed attempts, in milliseconds (docs/webhooks.md, "Retries"). */
const DELAYS_MS = [
  ...[5_000, 30_000, 2 * MINUTE_MS, 10 * MINUTE_MS, 30 * MINUTE_MS],
  ...[HOUR_MS, 3 * HOUR_MS, 6 * HOUR_MS, 12 * HOUR_MS],
]
/** Random part of a delay, in both directions, so that deliveries that failed together are not retried together. */
const JITTER = 0.1
/** Maximum wait that a receiver may ask for by `Retry-After`, in milliseconds. */
const ASKED_MAX_MS = 24 * HOUR_MS

const GONE = 410
/** Number of failures in a row, and minimum time in milliseconds since the first of them, at which a webhook is disabled. */
const FAILURES_MAX = 20
const FAILING_MS = 72 * HOUR_MS

/** Response of a receiver; or the error, with `status` null, when there was no response. */
export interface Response {
  readonly status: number | null
  readonly error: string | null
  /** Field `Retry-After` of the response. */
  readonly retryAfter?: string | undefined
}

export interface Finished {
  readonly delivery: Pick<DeliveryRecord, 'attempt' | 'manual'>
  readonly response: Response
  /** Time of the response in milliseconds since the epoch. */
  readonly at: number
  /** Returns a number from 0 to 1. */
  readonly random: () => number
}

/** New state of a delivery after an attempt. */
export type Next = Pick<DeliveryRecord, 'attempt' | 'status' | 'nextAt' | 'error'>

const isSuccess = ({ status, error }: Response): boolean => error === null && status !== null && status >= 200 && status < 300

/** Plans what follows an attempt: the delivery is delivered, is attempted again, or has failed. Pure. */
export function planNext({ delivery, response, at, random }: Finished): Next {
  const attempt = delivery.attempt + 1
  if (isSuccess(response)) return { attempt, status: 'delivered', nextAt: null, error: null }
  const error = response.error ?? reasonOf(response.status)
  const delay = delivery.manual || response.status === GONE ? undefined : DELAYS_MS[attempt - 1]
  if (delay === undefined) return { attempt, status: 'failed', nextAt: null, error }
  const planned = Math.round(delay * (1 - JITTER + 2 * JITTER * random()))
  const asked = retryAfterMs(response.retryAfter, at, ASKED_MAX_MS) ?? 0
  return { attempt, status: 'pending', nextAt: at + Math.max(planned, asked), error }
}

function reasonOf(status: number | null): string {
  if (status !== null && status >= 300 && status < 400) return `status ${status}: redirects are not followed`
  return `status ${status}; expected 200 to 299`
}

/** Returns the reason to disable a webhook after an attempt, or undefined. Pure. */
export function whyDisable(response: Response, streak: FailureStreak | undefined, at: number): DisabledReason | undefined {
  if (response.status === GONE && response.error === null) return 'receiver_gone'
  if (!streak) return undefined
  return streak.failures >= FAILURES_MAX && at - streak.since >= FAILING_MS ? 'too_many_failures' : undefined
}
