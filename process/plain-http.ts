import type { Socket } from 'node:net'
import type { Server, TLSSocket } from 'node:tls'
import { codeOf } from '../shared/errors.ts'

/** Error code of OpenSSL for a handshake that begins with a request line of plain HTTP. */
const PLAIN_HTTP = 'ERR_SSL_HTTP_REQUEST'

/** Sentence for a caller that sends plain HTTP to a TLS port. */
export const USE_HTTPS = 'this port speaks HTTPS: use https:// instead of http://'

/**
 * Answers plain HTTP on the port of a TLS server with `response`, a complete HTTP/1.1 response. The failed handshake closes the connection right
 * after the write, so that no connection stays open longer.
 */
export function answerPlainHttp(server: Server, response: () => string): void {
  /** TCP connections in a handshake, by their addresses: a TLS socket does not reveal the TCP socket below it. */
  const handshaking = new Map<string, Socket>()
  server.on('connection', (socket: Socket) => {
    const ends = endsOf(socket)
    handshaking.set(ends, socket)
    socket.once('close', () => handshaking.get(ends) === socket && handshaking.delete(ends))
  })
  server.on('secureConnection', (socket) => handshaking.delete(endsOf(socket)))
  server.on('tlsClientError', (error, socket) => {
    if (codeOf(error) === PLAIN_HTTP) handshaking.get(endsOf(socket))?.end(response())
  })
}

/** Key of a connection by its addresses and ports: unique among open connections. */
export const endsOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket | TLSSocket): string =>
  [remoteAddress, remotePort, localAddress, localPort].join(' ')
