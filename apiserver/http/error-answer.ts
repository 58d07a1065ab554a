import { MooringError } from '../../shared/errors.ts'
import { StoreError } from '../../store/errors.ts'
import { type ApiCode, ApiError, invalidRequest, wrongField } from './errors.ts'
import { JOURNAL_AWAY } from '../tunnels/tunnel-presence.ts'

/** Seconds after which a caller may try again when nothing better is known. */
const RETRY_AFTER = '2'

const CODE_OF_STORE: Readonly<Record<StoreError['code'], ApiCode>> = {
  not_found: 'not_found',
  already_exists: 'conflict',
  conflict: 'conflict',
  invalid: 'invalid_request',
  gone: 'unavailable',
  forbidden: 'forbidden',
  unavailable: 'unavailable',
}

/** In place of the store's own sentence, which names objects and files that callers do not know; the log has it. */
const SENTENCE_OF_STORE: Readonly<Partial<Record<StoreError['code'], string>>> = {
  not_found: 'the resource is gone',
  already_exists: 'the resource exists already',
  conflict: 'another request changed the resource meanwhile; read it again, then repeat the change',
  gone: `the storage is unavailable; retry in ${RETRY_AFTER} s`,
  unavailable: `the storage is unavailable; retry in ${RETRY_AFTER} s`,
}

/** The body of every answer that is not a success (surface, section 2). */
export interface ErrorBody {
  readonly msg: string
  readonly error: {
    readonly code: ApiCode
    readonly details: readonly { readonly field: string; readonly message: string }[]
    readonly requestId: string
  }
}

export function errorBody(error: ApiError, requestId: string): ErrorBody {
  return { msg: error.message, error: { code: error.code, details: error.details, requestId } }
}

/** Whatever was thrown, as the answer it becomes. The text of an unknown error stays inside: it may hold anything. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return withRetryAfter(error)
  if (error instanceof StoreError) return withRetryAfter(fromStore(error))
  if (error instanceof MooringError && error.code === 'forbidden')
    return new ApiError('forbidden', error.message, { cause: error })
  // As when its disk, or its server, does not answer.
  if (error instanceof MooringError && JOURNAL_AWAY.has(error.code))
    return withRetryAfter(new ApiError('unavailable', `the journal is unavailable; retry in ${RETRY_AFTER} s`, { cause: error }))
  if (isBadPath(error)) return wrongField('path', 'is not valid percent-encoded UTF-8', { cause: error })
  return new ApiError('internal', 'an unexpected error; quote the request id when you report it', { cause: error })
}

function fromStore(error: StoreError): ApiError {
  const details = error.fields.map(({ field, message }) => ({ field: fieldOfBody(field), message }))
  // The embedded store's own sentence names fields as the resource has them.
  if (details.length > 0) return invalidRequest(details, { cause: error })
  return new ApiError(CODE_OF_STORE[error.code], SENTENCE_OF_STORE[error.code] ?? error.message, { cause: error })
}

/** A field of an object by its name in the API. */
function fieldOfBody(field: string): string {
  return field === 'spec.displayName' ? 'name' : field.replace(/^spec\./, '')
}

function withRetryAfter(error: ApiError): ApiError {
  if (error.code !== 'unavailable' || error.headers['Retry-After'] !== undefined) return error
  const { message, details, headers } = error
  return new ApiError('unavailable', message, {
    cause: error.cause,
    details,
    headers: { ...headers, 'Retry-After': RETRY_AFTER },
  })
}

/** Express throws a URIError with `status` 400 for a path parameter that does not decode. */
function isBadPath(error: unknown): boolean {
  return error instanceof URIError && 'status' in error && error.status === 400
}
