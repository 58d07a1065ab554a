/** Prefix of the REST API for these pages; the server replaces the session cookie by the token (apiserver/dashboard/dashboard.ts). */
const API = '/dashboard'
const SESSION = '/dashboard/session'

export interface FieldError {
  readonly field: string
  readonly message: string
}

/** Error answer of the API, or a failed connection (`status` 0). `message` is a sentence of the API: text, never markup. */
export class ApiFailure extends Error {
  readonly status: number
  readonly code: string
  readonly details: readonly FieldError[]

  constructor(
    message: string,
    { status, code, details = [] }: Pick<ApiFailure, 'status' | 'code'> & { details?: readonly FieldError[] },
  ) {
    super(message)
    Object.assign(this, { name: 'ApiFailure' })
    this.status = status
    this.code = code
    this.details = details
  }
}

export interface CallOptions {
  readonly body?: object | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly signal?: AbortSignal | undefined
}

export interface ApiResult<D> {
  readonly data: D
  readonly etag: string | null
}

type Envelope = { readonly msg?: string; readonly data?: unknown; readonly error?: { code: string; details: FieldError[] } }

/** Called when the API answers that the session has ended. */
let onSignedOut = (): void => undefined
export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener
}

/** Calls the REST API. `path` begins with `/v1/`. @throws ApiFailure */
export async function call<D>(method: string, path: string, options: CallOptions = {}): Promise<ApiResult<D>> {
  const answer = await send<D>(method, API + path, options)
  return answer
}

/** Signs in with a token, or with the code of a link. @throws ApiFailure */
export const signIn = (secret: { readonly token: string } | { readonly code: string }): Promise<unknown> =>
  send('POST', SESSION, { body: secret })

export const signOut = (): Promise<unknown> => send('DELETE', SESSION, {})

/** URL of a stream of server-sent events. */
export const streamUrl = (path: string): string => API + path

/** Maximum time of a call in milliseconds: longer than the API's slowest answer, so that a stalled connection does not stop a page for ever. */
const LIMIT_MS = 40_000

async function send<D>(method: string, url: string, { body, headers, signal }: CallOptions): Promise<ApiResult<D>> {
  const limit = AbortSignal.timeout(LIMIT_MS)
  const { response, envelope } = await fetched(url, {
    method,
    headers: { ...(body && { 'Content-Type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
    credentials: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
  }).catch((cause: unknown) => {
    if (signal?.aborted) throw cause
    throw new ApiFailure('Mooring does not answer. Check that it runs; this page tries again.', {
      status: 0,
      code: 'unreachable',
    })
  })
  if (response.ok && envelope.msg === 'OK') return { data: envelope.data as D, etag: response.headers.get('ETag') }
  if (response.status === 401 && url !== SESSION) onSignedOut()
  const { code = 'internal', details = [] } = envelope.error ?? {}
  throw new ApiFailure(envelope.msg ?? `Mooring answered with status ${response.status}.`, {
    status: response.status,
    code,
    details,
  })
}

/** Fetches an answer whole. A body that is not JSON, such as that of a proxy, is an empty envelope. @throws Error when it does not arrive */
async function fetched(url: string, init: RequestInit): Promise<{ response: Response; envelope: Envelope }> {
  const response = await fetch(url, init)
  const text = await response.text()
  try {
    return { response, envelope: JSON.parse(text) as Envelope }
  } catch {
    return { response, envelope: {} }
  }
}

/** Escapes one segment of a path. */
export const segment = (text: string): string => encodeURIComponent(text)

/** Returns a query string of the parameters that have a value. */
export function query(parameters: Readonly<Record<string, string | undefined>>): string {
  const set = Object.entries(parameters).filter((pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== '')
  return set.length === 0 ? '' : `?${new URLSearchParams(set).toString()}`
}
