import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { Express } from 'express'
import { pino, type Logger } from 'pino'
import { z } from 'zod'
import { respondToClientError } from '../../../apiserver/http/client-error.ts'
import { type AppDeps, createApp, createRequestLimiters } from '../../../apiserver/http/app.ts'
import { AuthenticationError } from '../../../apiserver/auth/authenticate.ts'
import { DEFAULT_LIMITS } from '../../../apiserver/http/rate-limit.ts'
import { createMetrics } from '../../../apiserver/http/access-log.ts'
import { type AnyRoute, type Reply, route, type RouteRequest } from '../../../apiserver/http/route.ts'

/** Parsed response. `body` is its JSON, an empty object without any. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: AnswerBody
}

/** Body of a success or of an error, as a test reads it. */
export interface AnswerBody {
  readonly msg?: string
  readonly data?: Readonly<Record<string, unknown>>
  readonly error?: {
    readonly code: string
    readonly details: readonly { readonly field: string; readonly message: string }[]
    readonly requestId: string
  }
}

/** Returns status and code of a response: `404 not_found`, `200 OK`. */
export const codeOf = ({ status, body }: Answer): string => `${status} ${body.error?.code ?? 'OK'}`

/** Returns the fields that an error names. */
export const fieldsOf = ({ body }: Answer): readonly string[] | undefined => body.error?.details.map(({ field }) => field)

export interface CallOptions {
  readonly token?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Body, sent as JSON; a string or bytes are sent as they are. */
  readonly body?: unknown
}

export interface HttpApp extends AsyncDisposable {
  readonly url: string
  readonly port: number
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  /** Sends bytes as they are. Resolves with all bytes of the response once the server has closed the connection. */
  raw(text: string): Promise<string>
  /** Sends the parts of a body as chunks, without Content-Length. */
  chunked(path: string, parts: readonly string[], headers: Readonly<Record<string, string>>): Promise<number>
}

/** Serves an app over HTTP on a free port until disposed. */
export async function serveApp(app: Express): Promise<HttpApp> {
  const server = createServer(app).on('clientError', respondToClientError).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`

  async function call(method: string, path: string, { token, headers = {}, body }: CallOptions = {}): Promise<Answer> {
    const content = typeof body === 'string' || body instanceof Uint8Array ? Buffer.from(body) : JSON.stringify(body)
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: content }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: (text === '' ? {} : JSON.parse(text)) as AnswerBody }
  }

  async function raw(text: string): Promise<string> {
    const socket = connect(port, '127.0.0.1')
    socket.write(text)
    const chunks: Buffer[] = []
    for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk)
    return Buffer.concat(chunks).toString()
  }

  function chunked(path: string, parts: readonly string[], headers: Readonly<Record<string, string>>): Promise<number> {
    return new Promise((resolve, reject) => {
      const sent = request(url + path, { method: 'POST', headers }, (res) => {
        res.resume()
        resolve(res.statusCode ?? 0)
      })
      sent.on('error', reject)
      for (const part of parts) sent.write(part)
      sent.end()
    })
  }

  return {
    url,
    port,
    call,
    raw,
    chunked,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

export interface ToyApp extends HttpApp {
  /** Log lines so far, parsed. */
  readonly lines: readonly Readonly<Record<string, unknown>>[]
  readonly metrics: ReturnType<typeof createMetrics>
}

export function createLines(): { log: Logger; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = []
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>)
  return { log: pino({ level: 'debug' }, { write }), lines }
}

/** Serves `routes` on the shared listener. A token is the user's name; the token `bad` is rejected. */
export async function serveRoutes(routes: readonly AnyRoute[], changes: Partial<AppDeps> = {}): Promise<ToyApp> {
  const metrics = createMetrics()
  const { log, lines } = createLines()
  const verifyJwt = async (token: string) => {
    if (token === 'bad') throw new AuthenticationError('invalid')
    return { user: `local:${token}`, groups: [] }
  }
  const app = createApp({
    listener: 'shared',
    routes,
    verifyJwt,
    verifyApiToken: () => {
      throw new AuthenticationError('invalid')
    },
    limiters: createRequestLimiters(DEFAULT_LIMITS),
    metrics,
    log,
    ...changes,
  })
  const served = await serveApp(app)
  const dispose = async () => {
    await served[Symbol.asyncDispose]()
    metrics.close()
  }
  return { ...served, lines, metrics, [Symbol.asyncDispose]: dispose }
}

const Toy = z.object({ name: z.string(), size: z.int().optional(), tags: z.array(z.object({ key: z.string() })).optional() })
/** Listeners of a route on the shared listener. */
export const on = ['shared'] as const
export const ok = { 200: z.object({}) }

/** Responds with its input. */
const echo = async ({ params, query, body, idempotencyKey, ifMatch, namespaceHeader }: RouteRequest): Promise<Reply> => ({
  status: 200,
  data: { params, query, body, idempotencyKey, ifMatch, namespaceHeader },
  etag: '42',
})

/** Routes of each kind, which respond with their input. */
export const toys: readonly AnyRoute[] = [
  route({
    ...{ method: 'get', path: '/v1/toys', on, id: 'listToys', summary: '', replies: ok, handle: echo },
    query: z.object({ color: z.string().optional() }),
  }),
  route({
    ...{ method: 'post', path: '/v1/toys', on, id: 'createToy', summary: '', replies: ok, handle: echo },
    body: Toy,
    idempotent: true,
  }),
  route({
    ...{ method: 'patch', path: '/v1/toys/{id}', on, id: 'patchToy', summary: '', replies: ok, handle: echo },
    params: z.object({ id: z.string() }),
    body: Toy.partial(),
  }),
  route({
    ...{ method: 'post', path: '/v1/toys/{id}/wash', on, id: 'washToy', summary: '', replies: ok, handle: echo },
    params: z.object({ id: z.string() }),
  }),
  route({ method: 'get', path: '/v1/elsewhere', on: ['dedicated'], id: 'elsewhere', summary: '', replies: ok, handle: echo }),
]
