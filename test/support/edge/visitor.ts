import {
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  createServer,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Tunnel } from '../api/answers.ts'
import { SOON } from '../patience.ts'

/** Response to a visitor. */
export interface Visit {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Request of a visitor; default: `GET` over HTTPS. */
export interface VisitOptions {
  readonly scheme?: 'http' | 'https'
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Fields of a tunnel's record that a visitor needs. */
export type Site = Pick<Tunnel, 'hostname' | 'endpoint'>

/**
 * Sends a request to a tunnel at its endpoint, as a browser that trusts the installation's CA (PEM). @throws Error without a
 * response
 */
export async function visit(ca: string, site: Site, path = '/', options: VisitOptions = {}): Promise<Visit> {
  const answer = await beginVisit(ca, site, path, options)
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await text(answer) }
}

/** Sends the same request, and resolves at the response head; the body is still to be read. @throws Error without a response */
export async function beginVisit(ca: string, { hostname, endpoint }: Site, path: string, options: VisitOptions = {}) {
  const request = send(ca, { hostname, endpoint }, path, options)
  return new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject)
  })
}

/** Upgrades to the protocol `echo`, and resolves with the connection. @throws Error when the upgrade is rejected */
export async function beginUpgrade(ca: string, site: Site, path: string): Promise<Duplex> {
  const request = send(ca, site, path, { headers: { Connection: 'Upgrade', Upgrade: 'echo' } })
  const socket = await new Promise<Duplex>((resolve, reject) => {
    request.once('upgrade', (_answer, upgraded) => resolve(upgraded)).once('error', reject)
    request.once('response', ({ statusCode }) => reject(new Error(`it was answered ${String(statusCode)}`)))
  })
  // 'close' follows.
  return socket.on('error', () => socket.destroy())
}

function send(ca: string, { hostname, endpoint }: Site, path: string, options: VisitOptions): ClientRequest {
  const { scheme = 'https', method = 'GET', headers = {} } = options
  const host = `${hostname}.${endpoint.domain}`
  const about = { host: endpoint.sshHost, path, method, headers: { Host: host, ...headers }, agent: false as const }
  const request =
    scheme === 'https'
      ? httpsRequest({ ...about, port: endpoint.httpsPort, servername: host, ca })
      : httpRequest({ ...about, port: endpoint.httpPort })
  return request.end()
}

const run = promisify(execFile)

/** Transports of visitors: HTTP/1.1 with and without TLS, and HTTP/2 over TLS. The edge does not support HTTP/2 without TLS. */
export type Transport = 'http' | 'https' | 'h2'
export const TRANSPORTS: readonly Transport[] = ['http', 'https', 'h2']

/** Response as curl prints it. */
export interface CurlAnswer {
  readonly status: number
  /** Value of `Mooring-Error`. */
  readonly reason: string | undefined
  readonly header: (name: string) => string | undefined
  readonly body: string
}

interface Asked {
  readonly transport: Transport
  /** Host name in the request and in the TLS handshake. */
  readonly host: string
  readonly path?: string
  /** Address of the edge; default: loopback. */
  readonly address?: string
  /** File with the certificate of the only trusted CA; without it no certificate is verified. */
  readonly ca?: string
  /** Wraps curl's command, for example to run it in another network. */
  readonly inside?: (command: readonly string[]) => readonly string[]
  /** Further arguments of curl. */
  readonly args?: readonly string[]
  /** Standard input of curl. */
  readonly input?: string
}

/** Sends a request to an edge on this machine with curl. @throws Error without a response */
export async function curl(
  { httpPort, httpsPort }: { readonly httpPort: number; readonly httpsPort: number },
  asked: Asked,
): Promise<CurlAnswer> {
  const command = commandOf(asked, asked.transport === 'http' ? httpPort : httpsPort)
  const [program = '', ...rest] = asked.inside?.(command) ?? command
  const running = run(program, rest)
  // curl that fails early reads no more of its input.
  running.child.stdin?.on('error', () => undefined).end(asked.input)
  const { stdout } = await running
  const parts = stdout.split('\r\n\r\n')
  // Interim responses come first.
  const last = parts.findLastIndex((part) => part.startsWith('HTTP/'))
  const [head = '', body = ''] = parts.slice(last)
  const header = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1]?.trim()
  return { status: Number(head.split(' ')[1]), reason: header('mooring-error'), header, body }
}

function commandOf(
  { transport, host, path = '/', address = '127.0.0.1', ca, args = [] }: Asked,
  port: number,
): readonly string[] {
  const version = transport === 'h2' ? '--http2' : '--http1.1'
  const trust = ca === undefined ? ['-k'] : ['--cacert', ca]
  const common = [
    '-sSi',
    ...trust,
    '--max-time',
    String(SOON.timeout / 1_000),
    version,
    '--resolve',
    `${host}:${port}:${address}`,
  ]
  return ['curl', ...common, ...args, `${transport === 'http' ? 'http' : 'https'}://${host}:${port}${path}`]
}

/** Request as {@link startLocalServer} received it, in the body of its response. */
export interface Seen {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
}

/** Starts a web server that responds with the request it received, and with a header `X-Secret`. */
export async function startLocalServer(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer((req, res) => {
    res.setHeader('X-Secret', 'inside')
    res.end(JSON.stringify({ url: req.url, method: req.method, headers: req.headers }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
