import type { Server } from 'node:tls'
import { codeOf } from '../shared/errors.ts'
import { followTcp, type TcpBelow } from './tcp-below-tls.ts'

/** Error code of OpenSSL for a handshake that begins with a request line of plain HTTP. */
const PLAIN_HTTP = 'ERR_SSL_HTTP_REQUEST'

/** Sentence for a caller that sends plain HTTP to a TLS port. */
export const USE_HTTPS = 'this port speaks HTTPS: use https:// instead of http://'

/**
 * Answers plain HTTP on the port of a TLS server with `response`, a complete HTTP/1.1 response. The failed handshake closes the connection right
 * after the write, so that no connection stays open longer.
 */
export function respondToPlainHttp(server: Server, response: () => string, tcpBelow: TcpBelow = followTcp(server)): void {
  server.on('tlsClientError', (error, socket) => {
    if (codeOf(error) === PLAIN_HTTP) tcpBelow(socket)?.end(response())
  })
}
