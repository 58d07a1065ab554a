import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { type Backoff, backoffMs } from '../../shared/timers.ts'

/** Result of one attempt of a request. */
export type Attempt =
  | { readonly type: 'answered'; readonly status: number; readonly retryAfterMs: number | undefined; readonly body: Buffer }
  /** `arrived` is false when the API server has certainly not processed the request. */
  | { readonly type: 'failed'; readonly arrived: boolean; readonly error: unknown }

/** Request as it is sent. */
export interface Exchange {
  readonly headers: OutgoingHttpHeaders
  readonly body?: string | undefined
  readonly signal: AbortSignal
}

export const failed = (error: unknown, arrived: boolean): Attempt => ({ type: 'failed', arrived, error })

/** Opens a stream. @returns the stream, or the error when the connection allows no more streams */
export function openStream(session: ClientHttp2Session, { headers, body, signal }: Exchange): ClientHttp2Stream | Error {
  try {
    const stream = session.request(headers, { signal, endStream: body === undefined })
    if (body !== undefined) stream.end(body)
    return stream
  } catch (error) {
    return error instanceof Error ? error : new Error('the request could not be sent', { cause: error })
  }
}

/** Returns the status, and `Retry-After` (seconds in responses of API servers) in milliseconds. */
export function headOfResponse(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): {
  readonly status: number
  readonly retryAfterMs: number | undefined
} {
  const after = headers['retry-after'] ?? ''
  return { status: headers[':status'] ?? 0, retryAfterMs: /^\d+$/.test(after) ? Number(after) * 1_000 : undefined }
}

/** Sends a request and reads the whole response. Never rejects. */
export function exchange(session: ClientHttp2Session, request: Exchange): Promise<Attempt> {
  const stream = openStream(session, request)
  if (stream instanceof Error) return Promise.resolve(failed(stream, false))
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let head: ReturnType<typeof headOfResponse> | undefined
    let ended = false
    let error: unknown
    stream.on('response', (headers) => {
      head = headOfResponse(headers)
    })
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      ended = true
    })
    stream.on('error', (cause) => {
      error = cause
    })
    stream.on('close', () => {
      const { rstCode } = stream
      if (head && ended && !error && rstCode === constants.NGHTTP2_NO_ERROR) {
        resolve({ type: 'answered', ...head, body: Buffer.concat(chunks) })
      } else {
        // RFC 9113, section 8.7: a refused stream was not processed.
        resolve(failed(error ?? new Error('the response was cut off'), rstCode !== constants.NGHTTP2_REFUSED_STREAM))
      }
    })
  })
}

/** Input of {@link retryMs}. */
interface RetryInput {
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
