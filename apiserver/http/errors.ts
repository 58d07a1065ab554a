import { type FieldError, MooringError } from '../../shared/errors.ts'
import { StoreError } from '../../store/port.ts'

/** Error codes of the REST API with their statuses (docs/api.md, "Errors"). */
export const STATUS_OF = {
  invalid_json: 400,
  invalid_request: 400,
  namespace_required: 400,
  unauthenticated: 401,
  forbidden: 403,
  quota_exceeded: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  too_large: 413,
  unsupported_media_type: 415,
  unknown_region: 422,
  unsupported_motor: 422,
  no_active_endpoint: 422,
  unknown_plan: 422,
  plan_too_small: 422,
  unsupported_addon: 422,
  unsupported_extension: 422,
  unknown_database: 422,
  outside_restore_window: 422,
  idempotency_key_reused: 422,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const
export type ApiCode = keyof typeof STATUS_OF

/** Error answer of the API. `headers` are set on the response (`Allow`, `Retry-After`, `WWW-Authenticate`). */
export class ApiError extends MooringError {
  declare readonly code: ApiCode
  readonly details: readonly FieldError[]
  readonly headers: Readonly<Record<string, string>>

  constructor(
    code: ApiCode,
    message: string,
    options: ErrorOptions & { details?: readonly FieldError[]; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(code, message, options)
    this.details = options.details ?? []
    this.headers = options.headers ?? {}
  }

  get status(): number {
    return STATUS_OF[this.code]
  }
}

/** Creates a 400 for one invalid field; `message` is the rule. */
export function wrongField(field: string, message: string, options: ErrorOptions = {}): ApiError {
  return invalidRequest([{ field, message }], options)
}

/** Maximum number of field errors in the message; `details` has all. */
const NAMED_IN_MESSAGE = 3

/** Creates a 400 with all invalid fields. */
export function invalidRequest(details: readonly FieldError[], options: ErrorOptions = {}): ApiError {
  const named = details.slice(0, NAMED_IN_MESSAGE).map(({ field, message }) => `${field} ${message}`)
  const rest = details.length - named.length
  return new ApiError('invalid_request', named.join('; ') + (rest > 0 ? `; and ${rest} more` : ''), { ...options, details })
}

/** Error codes of an unavailable journal, SQLite and PostgreSQL. */
export const JOURNAL_UNAVAILABLE: ReadonlySet<string> = new Set(['unavailable', 'journal_away'])

/** Default value of `Retry-After` in seconds. */
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

/** Messages in place of the store's own, which name internal objects and files. The log has the original. */
const SENTENCE_OF_STORE: Readonly<Partial<Record<StoreError['code'], string>>> = {
  not_found: 'the resource no longer exists',
  already_exists: 'the resource exists already',
  conflict: 'another request changed the resource meanwhile; read it again, then repeat the change',
  gone: `the storage is unavailable; retry in ${RETRY_AFTER} s`,
  unavailable: `the storage is unavailable; retry in ${RETRY_AFTER} s`,
}

/** Body of every error answer (docs/api.md, "Errors"). */
interface ErrorBody {
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

/** Converts a thrown value to the error that the caller gets. The text of an unknown error is not exposed: it may contain secrets. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return withRetryAfter(error)
  if (error instanceof StoreError) return withRetryAfter(fromStore(error))
  if (error instanceof MooringError && error.code === 'forbidden')
    return new ApiError('forbidden', error.message, { cause: error })
  // The journal's disk or server does not respond.
  if (error instanceof MooringError && JOURNAL_UNAVAILABLE.has(error.code))
    return withRetryAfter(new ApiError('unavailable', `the journal is unavailable; retry in ${RETRY_AFTER} s`, { cause: error }))
  if (isBadPath(error)) return wrongField('path', 'is not valid percent-encoded UTF-8', { cause: error })
  return new ApiError('internal', 'an unexpected error; quote the request id when you report it', { cause: error })
}

function fromStore(error: StoreError): ApiError {
  const details = error.fields.map(({ field, message }) => ({ field: fieldOfBody(field), message }))
  // The store's message names fields of the resource; the answer names fields of the body.
  if (details.length > 0) return invalidRequest(details, { cause: error })
  return new ApiError(CODE_OF_STORE[error.code], SENTENCE_OF_STORE[error.code] ?? error.message, { cause: error })
}

/** Maps a field of a resource to its name in the API. */
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
