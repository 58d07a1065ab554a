import type { ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2'
import { type ClusterConfig, createCredentialSource } from './credentials.ts'
import { MooringError } from '../../shared/errors.ts'
import { type Clock, pause, systemClock } from '../../shared/timers.ts'
import { StoreError } from '../port.ts'
import { createConnection } from './connection.ts'
import { type Attempt, exchange, failed, headOfResponse, openStream, retryMs } from './exchange.ts'

/** Request to an API server. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path with a leading slash and encoded segments. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | undefined>> | undefined
  /** Body, which is sent as JSON. */
  readonly body?: unknown
  /** Content type of the body. Default `application/json`. */
  readonly contentType?: string | undefined
  /** Whether the request may be repeated when it may have been carried out. Default: true for GET only. */
  readonly idempotent?: boolean | undefined
  /** Timeout for all attempts together, in milliseconds, if shorter than that of the client. */
  readonly timeoutMs?: number | undefined
}

export interface ApiResponse {
  readonly status: number
  /** Parsed JSON; undefined when the response is not JSON. */
  readonly body: unknown
}

/** Response of a watch, whose body is still arriving. */
export interface ApiStream {
  readonly status: number
  readonly stream: ClientHttp2Stream
}

export interface KubernetesClientDeps {
  readonly config: ClusterConfig
  /** Timeout of a request, all attempts together, in milliseconds. Default 20,000. */
  readonly timeoutMs?: number | undefined
  /** See ConnectionDeps. */
  readonly connectMs?: number | undefined
  readonly pingMs?: number | undefined
  readonly clock?: Clock
  readonly random?: () => number
}

/** Client of one API server: concurrent requests over one HTTP/2 connection. */
export interface KubernetesClient extends AsyncDisposable {
  /** Sends a request and returns the response, whatever its status. @throws StoreError `unavailable` when there is no response */
  request(request: ApiRequest): Promise<ApiResponse>
  /** Opens a stream and resolves when the head of the response has arrived. @throws StoreError `unavailable` */
  open(request: ApiRequest, signal: AbortSignal): Promise<ApiStream>
  close(): Promise<void>
}

/** Creates the client. @throws MooringError `invalid_settings` when the config has no cluster or its URL is not https */
export function createKubernetesClient(deps: KubernetesClientDeps): KubernetesClient {
  const { config, timeoutMs = 20_000, clock = systemClock, random = Math.random } = deps
  const base = baseOf(config)
  const credentials = createCredentialSource(config, clock)
  let closed = false
  const connection = createConnection({ ...deps, origin: base.origin, tls: async () => (await credentials.current()).tls })

  async function headersOf({
    method,
    path,
    query,
    body,
    contentType = 'application/json',
  }: ApiRequest): Promise<OutgoingHttpHeaders> {
    const given = Object.entries(query ?? {}).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
    const search = given.length === 0 ? '' : `?${new URLSearchParams(Object.fromEntries(given)).toString()}`
    return {
      ':method': method,
      ':path': `${base.path}${path}${search}`,
      accept: 'application/json',
      'user-agent': 'mooring',
      ...(body !== undefined && { 'content-type': contentType }),
      ...(await credentials.current()).headers,
    }
  }

  async function attempt(request: ApiRequest, body: string | undefined, signal: AbortSignal): Promise<Attempt> {
    try {
      const [session, headers] = await orAborted(Promise.all([connection.session(), headersOf(request)]), signal)
      return await exchange(session, { headers, body, signal })
    } catch (error) {
      return failed(error, false)
    }
  }

  async function request(wanted: ApiRequest): Promise<ApiResponse> {
    const { idempotent = wanted.method === 'GET' } = wanted
    const ms = Math.min(timeoutMs, wanted.timeoutMs ?? timeoutMs)
    const deadline = clock.now() + ms
    const late = new AbortController()
    const disarm = clock.after(ms, () => late.abort())
    const body = wanted.body === undefined ? undefined : JSON.stringify(wanted.body)
    try {
      for (let tries = 1; ; tries += 1) {
        const outcome = await attempt(wanted, body, late.signal)
        const again = retryMs(outcome, { idempotent, tries, random })
        if (again === undefined || closed || clock.now() + again >= deadline) return answerOf(outcome)
        if (outcome.type === 'answered' && outcome.status === 401) credentials.forget()
        await pause(clock, again, late.signal)
      }
    } finally {
      disarm()
    }
  }

  async function head(wanted: ApiRequest, signal: AbortSignal, either: AbortSignal): Promise<Head> {
    const [session, headers] = await orAborted(Promise.all([connection.session(), headersOf(wanted)]), either)
    const stream = openStream(session, { headers, signal })
    if (stream instanceof Error) throw stream
    return { stream, ...(await headOf(stream, either)) }
  }

  async function open(wanted: ApiRequest, signal: AbortSignal): Promise<ApiStream> {
    const late = new AbortController()
    const disarm = clock.after(timeoutMs, () => late.abort())
    const either = AbortSignal.any([signal, late.signal])
    try {
      for (let tries = 1; ; tries += 1) {
        const { stream, status, retryAfterMs } = await head(wanted, signal, either)
        const outcome = { type: 'answered', status, retryAfterMs, body: Buffer.alloc(0) } as const
        const again = retryMs(outcome, { idempotent: true, tries, random })
        if (again === undefined) return { status, stream }
        stream.close()
        if (status === 401) credentials.forget()
        await pause(clock, again, either)
      }
    } catch (error) {
      throw unanswered(error)
    } finally {
      disarm()
    }
  }

  async function close(): Promise<void> {
    closed = true
    await connection.close()
  }

  return { request, open, close, [Symbol.asyncDispose]: close }
}

function baseOf(config: ClusterConfig): { readonly origin: string; readonly path: string } {
  const server = config.getCurrentCluster()?.server ?? ''
  if (!URL.canParse(server) || new URL(server).protocol !== 'https:') {
    throw new MooringError('invalid_settings', 'the kubeconfig names no API server with an https URL')
  }
  const { origin, pathname } = new URL(server)
  return { origin, path: pathname.replace(/\/$/, '') }
}

const unanswered = (cause: unknown): StoreError => new StoreError('unavailable', 'the API server does not answer', { cause })

/** Returns the response of an attempt. @throws StoreError `unavailable` */
function answerOf(attempt: Attempt): ApiResponse {
  if (attempt.type === 'failed') throw unanswered(attempt.error)
  return { status: attempt.status, body: parsed(attempt.body) }
}

/** Parses JSON. Returns undefined for other text: a proxy may respond with HTML. */
function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

/** Settles like `promise`, or rejects as soon as `signal` aborts: a credential plugin may hang. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(new Error('no connection within the timeout'))
    }
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort)
    promise.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', onAbort)
    })
  })
}

interface Head {
  readonly stream: ClientHttp2Stream
  readonly status: number
  readonly retryAfterMs: number | undefined
}

/** Resolves with the head of the response. */
function headOf(stream: ClientHttp2Stream, signal: AbortSignal): Promise<Omit<Head, 'stream'>> {
  const { promise, resolve, reject } = Promise.withResolvers<Omit<Head, 'stream'>>()
  const onAbort = (): void => {
    stream.destroy(new Error('no response head within the timeout'))
  }
  signal.addEventListener('abort', onAbort)
  stream.once('response', (headers) => {
    resolve(headOfResponse(headers))
  })
  stream.on('error', reject)
  stream.once('close', () => {
    reject(new Error('the response was cut off'))
  })
  return promise.finally(() => {
    signal.removeEventListener('abort', onAbort)
  })
}
