import { readFile } from 'node:fs/promises'
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import type { Mooring } from './mooring.ts'

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

/** Visits `{hostname}.{domain}` on the edge of this machine, as a browser that trusts the local CA. */
export async function visit(
  { ready }: Pick<Mooring, 'ready'>,
  hostname: string,
  path = '/',
  options: VisitOptions = {},
): Promise<Visit> {
  const { scheme = 'https', method = 'GET', headers = {} } = options
  const host = `${hostname}.${ready.domain}`
  const about = { host: '127.0.0.1', path, method, headers: { Host: host, ...headers }, agent: false as const }
  const request =
    scheme === 'https'
      ? httpsRequest({ ...about, port: ready.httpsPort, servername: host, ca: await readFile(ready.ca) })
      : httpRequest({ ...about, port: ready.httpPort })
  request.end()
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject)
  })
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await text(answer) }
}
