import { MooringError } from '../../shared/errors.ts'
import { type Backoff, backoffMs } from '../../shared/timers.ts'
import { AcmeError } from './acme-error.ts'
import type { OrderState } from './order-state.ts'
import { OrderLostError, randomToken } from './order-steps.ts'

/** Result of an attempt, for metrics. */
export type OrderResult = 'issued' | 'failed' | 'check_failed' | 'rate_limited' | 'over_budget'

/** Wait after a failed check, of which the CA knows nothing. */
const CHECK_BACKOFF: Backoff = { baseMs: 10_000, maxMs: 600_000 }
/** Wait after the CA rejected a request or an order. */
export const ORDER_BACKOFF: Backoff = { baseMs: 60_000, maxMs: 6 * 3_600_000 }
/** Wait after a failed request that does not mean that the order has failed. */
const REQUEST_BACKOFF: Backoff = { baseMs: 2_000, maxMs: 1_800_000 }
/** Code of the error of an account whose settings in the TunnelEndpoint are wrong. */
export const ACCOUNT_UNUSABLE = 'acme_account_unusable'
const MESSAGE_MAX = 1_000

/** Failure of the operator's own check of a challenge. The CA was not asked to validate. */
export class CheckError extends MooringError {
  constructor(message: string) {
    super('challenge_not_answered', message)
  }
}

/** Whether an error ends an attempt and tenants see its message. */
export const isReported = (error: unknown): boolean =>
  error instanceof AcmeError || error instanceof CheckError || (error instanceof MooringError && error.code === ACCOUNT_UNUSABLE)

export function resultOf(error: unknown): OrderResult {
  if (error instanceof CheckError) return 'check_failed'
  return error instanceof AcmeError && error.isLimit ? 'rate_limited' : 'failed'
}

/** Whether the CA does not know the account, or does not accept it any more. */
export const isAccountGone = ({ type }: AcmeError): boolean => type === 'accountDoesNotExist' || type === 'unauthorized'

/** Whether the order at the CA may still lead to a certificate, because only a request failed. */
export const isOpen = (error: unknown): boolean =>
  error instanceof AcmeError && !(error instanceof OrderLostError) && error.isTransient

/**
 * Returns the state of an order after a failure. The order at the CA is kept when it may still lead to a certificate; otherwise the next attempt
 * begins with a check and makes another order. `isInterrupted`: the process was restarted, or the account got another key, while the CA
 * validated. In embedded mode the edge was away during the restart too, so the next attempt follows sooner, unless attempts failed before.
 */
export function failedState(
  state: OrderState,
  error: unknown,
  { now, random, isInterrupted }: { readonly now: number; readonly random: () => number; readonly isInterrupted: boolean },
): OrderState {
  const failures = state.failures + 1
  const asked = error instanceof AcmeError ? (error.retryAfterMs ?? 0) : 0
  const waitMs = Math.ceil(Math.max(asked, backoffMs(backoffOf(error, isInterrupted && state.failures === 0), failures, random)))
  const message = error instanceof Error ? error.message : String(error)
  const isKept = isOpen(error) || error instanceof CheckError
  const checked =
    !isKept && state.checkError !== undefined ? `${message}; before, the operator found: ${state.checkError}` : message
  const lastError = checked.slice(0, MESSAGE_MAX)
  const another = { phase: 'check', url: undefined, challenge: undefined, token: randomToken() } as const
  const checks = error instanceof CheckError ? { checks: state.checks + 1, checkError: lastError } : {}
  const unchecked = { checks: 0, checkError: undefined }
  return {
    ...state,
    ...(!isKept && { ...another, ...unchecked }),
    ...checks,
    failures,
    lastError,
    waits: false,
    next: { at: now + waitMs, waitMs },
  }
}

function backoffOf(error: unknown, isInterrupted: boolean): Backoff {
  if (error instanceof CheckError || (isInterrupted && error instanceof OrderLostError)) return CHECK_BACKOFF
  const isForgotten = error instanceof AcmeError && (isAccountGone(error) || error.status === 404)
  return isOpen(error) || isForgotten ? REQUEST_BACKOFF : ORDER_BACKOFF
}
