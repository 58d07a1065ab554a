import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Tunnel } from '../api/answers.ts'

export interface Visit {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

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
