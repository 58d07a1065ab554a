import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { ApiError } from '../http/errors.ts'

const READS = new Set(['GET', 'HEAD'])

/**
 * Checks that a page of the same origin sent the request, so that no other page can act with the session cookie. `Origin` must be that of the host. It
 * may be absent only in a read, because browsers send it with every change. `Sec-Fetch-Site`, if present, must be `same-origin`.
 * @throws ApiError `forbidden`
 */
export function requireSameOrigin(req: Pick<IncomingMessage, 'method' | 'headers' | 'socket'>): void {
  const { 'sec-fetch-site': site, origin, host = '' } = req.headers
  const isRead = READS.has(req.method ?? '')
  if (site !== undefined && site !== 'same-origin') throw foreign('Sec-Fetch-Site')
  if (origin === undefined ? !isRead : !isOrigin(origin, host, isEncrypted(req))) throw foreign('Origin')
}

const foreign = (header: string) => new ApiError('forbidden', `the request is not from a page of this dashboard (${header})`)

const isEncrypted = ({ socket }: Pick<IncomingMessage, 'socket'>): boolean => (socket as Partial<TLSSocket>).encrypted === true

/** Whether an origin is that of the host. A connection without TLS may come from a proxy that ends TLS, so both schemes are accepted then. */
function isOrigin(origin: string, host: string, encrypted: boolean): boolean {
  const schemes = encrypted ? ['https'] : ['https', 'http']
  return schemes.some((scheme) => origin === URL.parse(`${scheme}://${host}`)?.origin)
}
