import type { RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { ApiMetrics } from '../http/access-log.ts'
import { contextOf, sourceIpOf, sourceKeyOf } from '../http/request-context.ts'
import type { Principal } from '../http/route.ts'
import { ApiError } from '../http/errors.ts'

const BEARER = /^Bearer +([A-Za-z0-9._~+/=-]+) *$/i
/** Start of an API token. Every other token is a JWT. */
export const API_TOKEN_PREFIX = 'moor_'
/** Maximum length of a token in characters: bounds the cost of hashing and parsing an invalid one. */
const TOKEN_MAX = 8_192

export interface AuthenticateDeps {
  readonly verifyJwt: (token: string) => Promise<Principal>
  readonly verifyApiToken: (token: string) => Promise<Principal>
  /** Counts a failed authentication of a source address. @throws ApiError `rate_limited` past the limit */
  readonly countFailure: (source: string) => Promise<void>
  readonly metrics: ApiMetrics
  readonly log: Logger
}

/**
 * Creates the middleware that authenticates the caller by the header `Authorization: Bearer`. A token in a query string is ignored, because URLs
 * end up in logs. Only failures are rate-limited: a valid token still works from an address that other callers misuse.
 */
export function authenticate({ verifyJwt, verifyApiToken, countFailure, metrics, log }: AuthenticateDeps): RequestHandler {
  async function principalOf(header: string | undefined): Promise<Principal> {
    if (header === undefined) throw new AuthenticationError('missing')
    const token = BEARER.exec(header)?.[1]
    if (token === undefined || token.length > TOKEN_MAX) throw new AuthenticationError('malformed')
    return token.startsWith(API_TOKEN_PREFIX) ? verifyApiToken(token) : verifyJwt(token)
  }

  async function isAccepted(header: string | undefined): Promise<boolean> {
    try {
      await principalOf(header)
      return true
    } catch (error) {
      if (error instanceof AuthenticationError) return false
      throw error
    }
  }

  return async function authenticate(req, _res, next) {
    const context = contextOf(req)
    const header = req.get('Authorization')
    try {
      context.principal = await principalOf(header)
      context.isStillAccepted = () => isAccepted(header)
    } catch (error) {
      if (!(error instanceof AuthenticationError)) throw error
      const { reason, cause } = error
      metrics.authFailed(reason)
      // Only the name of the cause is logged: its text and fields may quote the token.
      log.debug(
        { reason, cause: cause instanceof Error ? cause.name : undefined, requestId: context.requestId },
        'authentication failed',
      )
      await countFailure(sourceKeyOf(sourceIpOf(req.ip)))
      throw error
    }
    next()
  }
}

/** Reason of a failed authentication: the label of `mooring_auth_failures_total`. */
export type FailureReason = 'missing' | 'malformed' | 'invalid' | 'expired' | 'not_yet_valid'

const MESSAGES: Readonly<Record<FailureReason, string>> = {
  missing: 'send a token in the header Authorization: Bearer',
  malformed: 'the header Authorization must be Bearer and one token',
  // One message for unknown, forged, deleted and foreign tokens: the difference would help an attacker.
  invalid:
    'the token is not valid here: it is unknown, revoked, changed, or of an issuer that this installation does not trust; an admin of the namespace creates another one',
  expired: 'the token has expired',
  not_yet_valid: 'the token is not valid yet',
}

/** Error 401 with `WWW-Authenticate: Bearer` (RFC 6750). `cause` goes to the log, never to the caller. */
export class AuthenticationError extends ApiError {
  readonly reason: FailureReason

  constructor(reason: FailureReason, options?: ErrorOptions) {
    super('unauthenticated', MESSAGES[reason], { ...options, headers: { 'WWW-Authenticate': 'Bearer' } })
    this.reason = reason
  }
}
