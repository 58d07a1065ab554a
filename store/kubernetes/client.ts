import type { ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2'
import type { ClusterConfig } from './cluster-config.ts'
import { MooringError } from '../../shared/errors.ts'
import { type Clock, pause, systemClock } from '../clock.ts'
import { StoreError } from '../errors.ts'
import { createConnection } from './connection.ts'
import { createCredentialSource } from './credentials.ts'
import { type Attempt, exchange, failed, headOfAnswer, openStream } from './exchange.ts'
import { retryMs } from './retry.ts'

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With its leading slash, segments already encoded. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | undefined>> | undefined
  /** Sent as JSON. */
  readonly body?: unknown
  /** `application/json` unless given. */
  readonly contentType?: string | undefined
  /** Whether it may be repeated when it is not known to have arrived; GETs may unless told otherwise. */
  readonly idempotent?: boolean | undefined
  /** Longest time for it, all tries together, where that is shorter than the client's. */
  readonly timeoutMs?: number | undefined
}

export interface ApiAnswer {
  readonly status: number
  /** The parsed JSON; undefined when the answer is none. */
  readonly body: unknown
}

/** The answer to a watch while it is still coming in. */
export interface ApiStream {
  readonly status: number
  readonly stream: ClientHttp2Stream
}

export interface KubernetesClientDeps {
  readonly config: ClusterConfig
  /** Longest time from a call to its end, all tries together. Default 20,000. */
  readonly timeoutMs?: number | undefined
  /** As for the connection. */
  readonly connectMs?: number | undefined
  readonly pingMs?: number | undefined
  readonly clock?: Clock
  readonly random?: () => number
}

/** Calls to one API server over one HTTP/2 connection, as many at a time as it takes. */
export interface KubernetesClient extends AsyncDisposable {
  /** @throws StoreError `unavailable` when there is no answer; whatever was answered is returned */
  request(request: ApiRequest): Promise<ApiAnswer>
  /** Resolves with the head of an answer whose end is far. @throws StoreError `unavailable` */
  open(request: ApiRequest, signal: AbortSignal): Promise<ApiStream>
  close(): Promise<void>
}

/** @throws MooringError `invalid_settings` when the config has no cluster or one that is not reached by https */
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

  async function request(wanted: ApiRequest): Promise<ApiAnswer> {
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
    throw new MooringError('invalid_settings', 'the kubeconfig names no API server that is reached by https')
  }
  const { origin, pathname } = new URL(server)
  return { origin, path: pathname.replace(/\/$/, '') }
}

const unanswered = (cause: unknown): StoreError => new StoreError('unavailable', 'the API server does not answer', { cause })

/** @throws StoreError `unavailable` */
function answerOf(attempt: Attempt): ApiAnswer {
  if (attempt.type === 'failed') throw unanswered(attempt.error)
  return { status: attempt.status, body: parsed(attempt.body) }
}

/** Proxies between may answer in HTML. */
function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

/** Rejects as soon as `signal` aborts: a credential plugin may hang for ever. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(new Error('no connection in time'))
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

/** The head of the answer, as soon as it is there. */
function headOf(stream: ClientHttp2Stream, signal: AbortSignal): Promise<Omit<Head, 'stream'>> {
  const { promise, resolve, reject } = Promise.withResolvers<Omit<Head, 'stream'>>()
  const onAbort = (): void => {
    stream.destroy(new Error('the head of the answer did not come in time'))
  }
  signal.addEventListener('abort', onAbort)
  stream.once('response', (headers) => {
    resolve(headOfAnswer(headers))
  })
  stream.on('error', reject)
  stream.once('close', () => {
    reject(new Error('the answer was cut off'))
  })
  return promise.finally(() => {
    signal.removeEventListener('abort', onAbort)
  })
}
