import type { RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { ApiMetrics } from '../metrics.ts'
import { contextOf } from '../http/request-context.ts'
import type { Principal } from '../http/route.ts'
import { sourceIpOf, sourceKeyOf } from '../http/source-ip.ts'
import { API_TOKEN_PREFIX } from './api-token.ts'
import { AuthenticationError } from './authentication-error.ts'

const BEARER = /^Bearer +([A-Za-z0-9._~+/=-]+) *$/i
/** Longer than any token of ours; keeps hashing and parsing of rubbish short. */
const TOKEN_MAX = 8_192

export interface AuthenticateDeps {
  readonly verifyJwt: (token: string) => Promise<Principal>
  readonly verifyApiToken: (token: string) => Promise<Principal>
  /** Counts a failure of a source. @throws ApiError `rate_limited` when there were too many */
  readonly countFailure: (source: string) => Promise<void>
  readonly metrics: ApiMetrics
  readonly log: Logger
}

/**
 * Finds out who calls, by the header `Authorization: Bearer` alone: a token in a query string would end in logs and histories.
 * Only failures are limited: a good token from a source that others misuse (a company's one address) still works.
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
      // Only the cause's name: its text and fields may quote the token.
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
