import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type SecureContext, type SecureContextOptions, type TLSSocket } from 'node:tls'
import { closerOf } from '../../process/listeners.ts'
import { createEntrance } from '../balancers/entrance.ts'
import { type Peer, peerOf } from '../balancers/peer.ts'
import { Counts } from '../counts.ts'
import { sourceKey } from '../source-key.ts'
import type { Accepted } from './accepted.ts'
import type { ProxyContext } from './context.ts'
import { createContexts } from './contexts.ts'
import { Http1Connection } from './http1/http1-connection.ts'
import { createHttp2 } from './http2/http2.ts'
import { bareName } from './head/request-head.ts'

/** A certificate that renews itself. */
export interface RenewedCertificate {
  /** PEM; undefined until there is one. */
  current(): { readonly certificate: string; readonly key: string } | undefined
  onRenew(handler: () => void): void
}

interface Deps {
  readonly context: ProxyContext
  readonly contextFor: (serverName: string) => Promise<SecureContext | undefined>
  readonly unknownHosts: RenewedCertificate | undefined
  readonly ticketKeys: Buffer | undefined
}

/** Connections that the kernel keeps until they are taken. */
const BACKLOG = 4096
/** For visitors to take the last word of an edge that stops. */
const FAREWELL_MS = 100

/** The sockets that visitors connect to. */
export interface Listeners {
  listenHttp(host: string, port: number): Promise<number>
  listenHttps(host: string, port: number): Promise<number>
  forget(serverName: string): void
  close(graceMs: number): Promise<void>
}

export function createListeners({ context, contextFor, unknownHosts, ticketKeys }: Deps): Listeners {
  const { limits, log } = context
  const closers: ((deadlineMs: number) => Promise<void>)[] = []
  const contexts = createContexts({ contextFor, size: limits.contexts })
  const http2 = createHttp2(context)
  /** Connections of each source. */
  const sources = new Counts()

  /** Counts a connection until it closes. Returns whether it is one too many. */
  function enter(socket: Socket, { address }: Peer): boolean {
    const source = sourceKey(address)
    sources.enter(source)
    socket.once('close', () => sources.leave(source))
    const isCrowd = sources.of(source) > limits.connectionsPerSource && context.trusted?.allows(address) !== true
    return isCrowd || context.connections.size >= limits.connections
  }

  const entrance = createEntrance({ trusted: context.trusted, headMs: limits.headMs, most: limits.connections, log })
  /** Whom balancers speak for on which connection: what TLS makes of a socket does not say which one that was. */
  const behind = new Map<string, Peer>()

  /** Who comes from then on, as at the end of a handshake, is not served. */
  let stopped = false

  function plain(socket: Socket, peer: Peer): void {
    if (stopped) return void socket.destroy()
    new Http1Connection(context, { socket, peer, scheme: 'http', serverName: undefined, surplus: enter(socket, peer) })
    socket.resume()
  }

  function secure(server: Server, socket: Socket, peer: Peer): void {
    const { address, port } = peerOf(socket)
    if (peer.address !== address || peer.port !== port) {
      const ends = endsOf(socket)
      behind.set(ends, peer)
      // The balancer may have the port in use again by then.
      socket.once('close', () => behind.get(ends) === peer && behind.delete(ends))
    }
    server.emit('connection', socket)
  }

  function secured(socket: TLSSocket): void {
    if (stopped) return void socket.destroy()
    const serverName = serverNameOf(socket)
    const peer = (behind.size > 0 ? behind.get(endsOf(socket)) : undefined) ?? peerOf(socket)
    const accepted = { socket, peer, scheme: 'https', serverName, surplus: enter(socket, peer) } as const
    if (socket.alpnProtocol === 'h2') http2.accept(accepted)
    else new Http1Connection(context, accepted)
  }

  const tcp = { allowHalfOpen: true, noDelay: true }
  /** Connections of HTTP/1.x are probed from a later age on (http1-connection.ts). */
  const probed = { keepAlive: true, keepAliveInitialDelay: 60_000 }

  function secureOptions(): SecureContextOptions {
    const { certificate: cert, key } = unknownHosts?.current() ?? {}
    return { minVersion: 'TLSv1.2', ...(cert !== undefined && { cert, key }), ...(ticketKeys && { ticketKeys }) }
  }

  async function listen(server: Server, host: string, port: number): Promise<number> {
    // Twice the bound is answered that it is too much; whoever comes then is not even answered.
    server.maxConnections = limits.connections * 2
    closers.push(closerOf(server))
    server.listen({ host, port, backlog: BACKLOG })
    await once(server, 'listening')
    server.on('error', (error) => log.error({ err: error }, 'a listener failed'))
    return (server.address() as AddressInfo).port
  }

  return {
    listenHttp: (host, port) =>
      listen(
        createServer(tcp, (socket) => entrance.admit(socket, (peer) => plain(socket, peer))),
        host,
        port,
      ),
    listenHttps(host, port) {
      const server = createTlsServer({
        ...tcp,
        ...probed,
        ...secureOptions(),
        ALPNProtocols: ['h2', 'http/1.1', 'http/1.0'],
        handshakeTimeout: limits.headMs,
        SNICallback: (serverName, done) => contexts.find(bareName(serverName), done),
      })
      unknownHosts?.onRenew(() => server.setSecureContext(secureOptions()))
      server.on('secureConnection', secured)
      server.on('tlsClientError', (_error, socket) => socket.destroy())
      if (!context.trusted) return listen(server, host, port)
      const front = createServer(tcp, (socket) => entrance.admit(socket, (peer) => secure(server, socket, peer)))
      return listen(front, host, port)
    },
    forget: (serverName) => contexts.forget(serverName),
    async close(graceMs) {
      // First visitors are told, then sockets are cut: an exchange that is still open when the clients go, which is next, would be recorded as upstream_reset.
      const timer = setTimeout(() => {
        stopped = true
        for (const connection of context.connections) connection.destroy()
      }, graceMs)
      const closed = closers.map((end) => end(graceMs + FAREWELL_MS))
      entrance[Symbol.dispose]()
      await Promise.all(closed)
      clearTimeout(timer)
    },
  }
}

/**
 * What a visitor asked for. OpenSSL does not tell it of a session of TLS 1.2 that was resumed, for which no certificate is chosen: Node has no name then, as for
 * one who asked for none. (It tells of TLS 1.3.)
 */
function serverNameOf(socket: TLSSocket): Accepted['serverName'] {
  if (typeof socket.servername === 'string') return bareName(socket.servername)
  return socket.isSessionReused() && socket.getProtocol() === 'TLSv1.2' ? null : undefined
}

/** No two connections that are open have both ends in common. */
const endsOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
  [remoteAddress, remotePort, localAddress, localPort].join(' ')
