import { once } from 'node:events'
import { request } from 'node:https'
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { buffer } from 'node:stream/consumers'
import { issueCertificate } from '../../../operator/certificates/local-ca.ts'
import type { Pebble } from './pebble.ts'

/** Answer of the CA. */
export interface CaAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Request to the CA: method, path, and the payload of its signed body. */
export interface CaRequest {
  readonly method: string
  readonly path: string
  readonly payload: string
}

/**
 * Change of an answer; `undefined` leaves the request without an answer. The proxy forwards the request when `forward` is called.
 */
export type Lie = (asked: CaRequest, forward: () => Promise<CaAnswer>) => Promise<CaAnswer | undefined>

/** Proxy in front of a Pebble that answers as a test wants. */
export interface LyingCa extends AsyncDisposable {
  readonly directoryUrl: string
  /** Sets what becomes of the next requests; undefined: the truth. */
  tell(lie: Lie | undefined): void
  /** Requests so far. */
  readonly asked: readonly CaRequest[]
}

export async function startLyingCa({ authority, port: real }: Pebble): Promise<LyingCa> {
  const own = await issueCertificate({ ca: authority, names: ['127.0.0.1'], now: new Date() })
  const asked: CaRequest[] = []
  let lie: Lie | undefined

  const handler = createServer((incoming, outgoing) => {
    void (async () => {
      const sent = await buffer(incoming)
      const about = { method: incoming.method ?? '', path: incoming.url ?? '', payload: payloadOf(sent.toString()) }
      asked.push(about)
      const forward = () => forwarded(real, { ...about, headers: incoming.headers, sent })
      const answer = lie ? await lie(about, forward) : await forward()
      if (!answer) return
      outgoing.writeHead(answer.status, { ...answer.headers, 'content-length': Buffer.byteLength(answer.body) })
      outgoing.end(incoming.method === 'HEAD' ? undefined : answer.body)
    })().catch(() => incoming.destroy())
  })
  const server = createTlsServer({ cert: own.certificate, key: own.key }, (incoming, outgoing) =>
    handler.emit('request', incoming, outgoing),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return {
    directoryUrl: `https://127.0.0.1:${port}/dir`,
    asked,
    tell: (next) => {
      lie = next
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function payloadOf(body: string): string {
  if (body === '') return ''
  const { payload } = JSON.parse(body) as { readonly payload: string }
  return Buffer.from(payload, 'base64url').toString()
}

interface Forwarded extends CaRequest {
  readonly headers: IncomingHttpHeaders
  readonly sent: Buffer
}

/** Forwards a request with its Host, from which Pebble makes the URLs of its answers. */
async function forwarded(port: number, { method, path, headers, sent }: Forwarded): Promise<CaAnswer> {
  const outgoing = request({ host: '127.0.0.1', port, method, path, headers, rejectUnauthorized: false })
  outgoing.end(sent)
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  const body = (await buffer(incoming)).toString()
  return { status: incoming.statusCode ?? 0, headers: incoming.headers, body }
}
