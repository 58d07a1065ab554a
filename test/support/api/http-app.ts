import type { Express } from 'express'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { answerClientError } from '../../../apiserver/http/client-error.ts'

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
  const server = createServer(app).on('clientError', answerClientError).listen(0, '127.0.0.1')
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
