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

/** Where a tunnel is visited, as its record says. */
export type Site = Pick<Tunnel, 'hostname' | 'endpoint'>

/** Visits a tunnel at its endpoint, as a browser that trusts the CA of the installation (PEM). @throws when there is no answer */
export async function visit(ca: string, site: Site, path = '/', options: VisitOptions = {}): Promise<Visit> {
  const answer = await beginVisit(ca, site, path, options)
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await text(answer) }
}

/** The same up to the head of the answer; its body is still to be read. @throws when there is no answer */
export async function beginVisit(ca: string, { hostname, endpoint }: Site, path: string, options: VisitOptions = {}) {
  const request = send(ca, { hostname, endpoint }, path, options)
  return new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject)
  })
}

/** Changes to the protocol `echo`, and resolves with the connection. @throws when that is refused */
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
