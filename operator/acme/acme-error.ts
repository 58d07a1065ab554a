import { z } from 'zod'
import { MooringError } from '../../shared/errors.ts'

/** Prefix of the error types of ACME (RFC 8555, section 6.7). */
const PREFIX = 'urn:ietf:params:acme:error:'
const DETAIL_MAX = 500

export type AcmeErrorCode =
  /** The CA has answered with an error. */
  | 'acme_rejected'
  /** No answer: the connection failed or timed out. */
  | 'acme_unreachable'
  /** The answer is not what RFC 8555 specifies. */
  | 'acme_invalid_answer'

interface Details {
  /** Type of the problem document without its prefix, such as `rateLimited`. */
  readonly type?: string | undefined
  /** HTTP status of the answer. */
  readonly status?: number | undefined
  /** Time that the CA asks to wait. */
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** Failure of a request to a certificate authority. Tenants see the message; it contains no secret. */
export class AcmeError extends MooringError {
  readonly type: string | undefined
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined

  constructor(code: AcmeErrorCode, message: string, { type, status, retryAfterMs, cause }: Details = {}) {
    super(code, message, { cause })
    this.type = type
    this.status = status
    this.retryAfterMs = retryAfterMs
  }

  /** Whether the CA asks to send fewer requests. */
  get isLimit(): boolean {
    return this.type === 'rateLimited' || this.status === 429
  }

  /** Whether the same request may succeed later. Such a failure does not mean that the order has failed. */
  get isTransient(): boolean {
    return this.code !== 'acme_rejected' || this.isLimit || this.type === 'badNonce' || (this.status ?? 0) >= 500
  }
}

/** Problem document (RFC 7807) of an answer, an authorization or a challenge. */
export const Problem = z.object({
  type: z.string().optional(),
  detail: z.string().optional(),
  subproblems: z.array(z.object({ detail: z.string().optional() })).optional(),
})
export type Problem = z.output<typeof Problem>

/** Type of a problem without the prefix of ACME. */
export const typeOf = ({ type }: Problem): string | undefined => (type?.startsWith(PREFIX) ? type.slice(PREFIX.length) : type)

/** Describes a problem in at most 500 characters. The CA's text may contain anything, so control characters are replaced. */
export function sentenceOf(problem: Problem): string {
  const { detail = 'no reason given', subproblems = [] } = problem
  const text = [detail, ...subproblems.map((each) => each.detail ?? '')].filter((part) => part !== '').join('; ')
  const type = typeOf(problem)
  return `${type === undefined ? '' : `${type}: `}${text}`.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').slice(0, DETAIL_MAX)
}
