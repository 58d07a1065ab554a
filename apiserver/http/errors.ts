import { type FieldError, MooringError } from '../../shared/errors.ts'

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
  unsupported_addon: 422,
  unsupported_extension: 422,
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
