import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import type { Tunnel } from './answers.ts'

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
  const { scheme = 'https', method = 'GET', headers = {} } = options
  const host = `${hostname}.${endpoint.domain}`
  const about = { host: endpoint.sshHost, path, method, headers: { Host: host, ...headers }, agent: false as const }
  const request =
    scheme === 'https'
      ? httpsRequest({ ...about, port: endpoint.httpsPort, servername: host, ca })
      : httpRequest({ ...about, port: endpoint.httpPort })
  request.end()
  return new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject)
  })
}
