import { ApiError } from '../http/errors.ts'

/** Reason of a failed authentication: the label of `mooring_auth_failures_total`. */
export type FailureReason = 'missing' | 'malformed' | 'invalid' | 'expired' | 'not_yet_valid'

const MESSAGES: Readonly<Record<FailureReason, string>> = {
  missing: 'send a token in the header Authorization: Bearer',
  malformed: 'the header Authorization must be Bearer and one token',
  // One message for unknown, forged, deleted and foreign tokens: the difference would help an attacker.
  invalid: 'the token is not valid here: it is unknown, revoked, changed, or of an issuer that this installation does not trust',
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
