import type { Rejection } from '../../../shared/tunnel-decisions.ts'

/** Rejection of a malformed request. */
export const bad = (detail: string): Rejection => ({ status: 400, reason: 'bad_request', detail })

export const BAD_BODY = bad('the body of the request is not valid')
export const BAD_HOST = bad('there must be one valid Host')
export const BAD_LINE = bad('a line of the head does not end with CRLF')
export const HEAD_TOO_LARGE: Rejection = { status: 431, reason: 'head_too_large', detail: 'the head of the request is too large' }
/** Host that is longer than any valid Host. */
const ENDLESS_HOST = /\r\nhost:[^\r\n]{512}/i

/**
 * Returns the rejection of a head that exceeds {@link MAX_HEAD}; `text` is its beginning, latin1. An overlong Host is an invalid Host
 * (RFC 9112, section 3.2).
 */
export const tooLarge = (text: string): Rejection => (ENDLESS_HOST.test(text) ? BAD_HOST : HEAD_TOO_LARGE)
export const BAD_EXPECTATION: Rejection = { status: 417, reason: 'bad_expectation', detail: 'only 100-continue can be expected' }
export const UNKNOWN_CODING: Rejection = {
  status: 501,
  reason: 'unknown_transfer_coding',
  detail: 'chunked is the only transfer coding that the edge knows',
}
export const STOPPING: Rejection = {
  status: 503,
  reason: 'edge_stopping',
  detail: 'this edge is stopping; send the request again',
}
export const TOO_SLOW: Rejection = { status: 408, reason: 'too_slow', detail: 'the request did not come in time' }
