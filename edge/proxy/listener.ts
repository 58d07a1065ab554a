import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type SecureContext, type SecureContextOptions, type TLSSocket } from 'node:tls'
import { closerOf } from '../../process/listeners.ts'
import { respondToPlainHttp, USE_HTTPS } from '../../process/plain-http.ts'
import { followTcp } from '../../process/tcp-below-tls.ts'
import { ACME_TLS } from '../../shared/tls-alpn.ts'
import { createEntrance } from '../balancers/entrance.ts'
import { type Peer, peerOf } from '../balancers/proxy-header.ts'
import { Counts, sourceKey } from '../counters.ts'
import type { Accepted } from './visitor.ts'
import type { ProxyContext } from './context.ts'
import { Http1Connection } from './http1/http1-connection.ts'
import { createHttp2 } from './http2/http2.ts'
import { createValidationContexts } from './validation-contexts.ts'
import { bareName } from './head/request-head.ts'

/** Certificate that is renewed at run time. */
export interface RenewedCertificate {
  /** Returns certificate and key as PEM; undefined until a certificate exists. */
  current(): { readonly certificate: string; readonly key: string } | undefined
  onRenew(handler: () => void): void
}

interface Deps {
  readonly context: ProxyContext
  readonly contextFor: (serverName: string) => Promise<SecureContext | undefined>
  readonly unknownHosts: RenewedCertificate | undefined
  readonly ticketKeys: Buffer | undefined
  /** Returns the key authorization of the challenge tls-alpn-01 for a server name under order. */
  readonly tlsChallenge: (serverName: string) => string | undefined
}

/** Protocols of visitors, the preferred one first. */
const PROTOCOLS = ['h2', 'http/1.1', 'http/1.0']

/** Connections that the kernel queues until they are accepted. */
const BACKLOG = 4096

const PLAIN_HTTP_BODY = `${USE_HTTPS}\n`
/** Response to plain HTTP on the port for HTTPS. */
const PLAIN_HTTP_RESPONSE = [
  ...['HTTP/1.1 400 Bad Request', 'Content-Type: text/plain; charset=utf-8', `Content-Length: ${PLAIN_HTTP_BODY.length}`],
  ...['Connection: close', '', PLAIN_HTTP_BODY],
].join('\r\n')

/** Listening sockets for visitors. */
export interface Listeners {
  listenHttp(host: string, port: number): Promise<number>
  listenHttps(host: string, port: number): Promise<number>
  forget(serverName: string): void
  close(graceMs: number): Promise<void>
}

export function createListeners({ context, contextFor, unknownHosts, ticketKeys, tlsChallenge }: Deps): Listeners {
  const { limits, log } = context
  const closers: ((deadlineMs: number) => Promise<void>)[] = []
  const contexts = createContexts({ contextFor, size: limits.contexts })
  const validations = createValidationContexts(tlsChallenge)
  const http2 = createHttp2(context)
  /** Connections of each source. */
  const sources = new Counts()

  /** Counts a connection until it closes. Returns whether the connection exceeds a limit. */
  function enter(socket: Socket, { address }: Peer): boolean {
    const source = sourceKey(address)
    sources.enter(source)
    socket.once('close', () => sources.leave(source))
    const isCrowd = sources.of(source) > limits.connectionsPerSource && context.trusted?.allows(address) !== true
    return isCrowd || context.connections.size >= limits.connections
  }

  const entrance = createEntrance({ trusted: context.trusted, headMs: limits.headMs, maxAwaited: limits.connections, log })
  /** Clients behind balancers, by their TCP connections. */
  const behind = new WeakMap<Socket, Peer>()

  /** True once connections are closed: later ones, such as those in a TLS handshake, are closed too. */
  let stopped = false

  function plain(socket: Socket, peer: Peer): void {
    if (stopped) return void socket.destroy()
    const surplus = enter(socket, peer)
    new Http1Connection(context, { socket, tcp: socket, peer, scheme: 'http', serverName: undefined, surplus })
    socket.resume()
  }

  function secure(server: Server, socket: Socket, peer: Peer): void {
    behind.set(socket, peer)
    server.emit('connection', socket)
  }

  /** `tcp`: the connection below; undefined once it is closed. */
  function secured(socket: TLSSocket, tcp: Socket | undefined): void {
    if (stopped || !tcp) return void socket.destroy()
    // The handshake is the whole answer (RFC 8737, section 3).
    if (socket.alpnProtocol === ACME_TLS) {
      socket.destroySoon()
      return
    }
    const serverName = serverNameOf(socket)
    const peer = behind.get(tcp) ?? peerOf(tcp)
    const accepted = { socket, tcp, peer, scheme: 'https', serverName, surplus: enter(socket, peer) } as const
    if (socket.alpnProtocol === 'h2') http2.accept(accepted)
    else new Http1Connection(context, accepted)
  }

  const tcp = { allowHalfOpen: true, noDelay: true }
  /** TCP keepalive from accept on; plain HTTP/1.x connections enable it at a later age (http1-connection.ts). */
  const probed = { keepAlive: true, keepAliveInitialDelay: 60_000 }

  function secureOptions(): SecureContextOptions {
    const { certificate: cert, key } = unknownHosts?.current() ?? {}
    return { minVersion: 'TLSv1.2', ...(cert !== undefined && { cert, key }), ...(ticketKeys && { ticketKeys }) }
  }

  async function listen(server: Server, host: string, port: number): Promise<number> {
    // Connections up to twice the limit get an error response; more are closed.
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
        ALPNCallback(this: TLSSocket, { servername, protocols }) {
          if (!protocols.includes(ACME_TLS)) return PROTOCOLS.find((each) => protocols.includes(each))
          return validations.choose(this, bareName(servername)) ? ACME_TLS : undefined
        },
        handshakeTimeout: limits.headMs,
        SNICallback(this: TLSSocket, serverName, done) {
          const name = bareName(serverName)
          if (tlsChallenge(name) === undefined) {
            contexts.find(name, done)
            return
          }
          const settled = (validation: SecureContext | undefined) =>
            validation ? done(null, validation) : contexts.find(name, done)
          void validations.find(this, name).then(settled, done)
        },
      })
      unknownHosts?.onRenew(() => server.setSecureContext(secureOptions()))
      const tcpBelow = followTcp(server)
      server.on('secureConnection', (socket: TLSSocket) => secured(socket, tcpBelow(socket)))
      respondToPlainHttp(server, () => PLAIN_HTTP_RESPONSE, tcpBelow)
      server.on('tlsClientError', (_error, socket) => socket.destroy())
      if (!context.trusted) return listen(server, host, port)
      const front = createServer(tcp, (socket) => entrance.admit(socket, (peer) => secure(server, socket, peer)))
      return listen(front, host, port)
    },
    forget: (serverName) => contexts.forget(serverName),
    async close(graceMs) {
      // Visitors get their responses before sockets are cut: an exchange that is open when the clients disconnect, which is next, would
      // be recorded as upstream_reset.
      const timer = setTimeout(() => {
        stopped = true
        for (const connection of context.connections) connection.destroy()
      }, graceMs)
      const closed = closers.map((end) => end(graceMs + limits.farewellMs))
      entrance[Symbol.dispose]()
      await Promise.all(closed)
      clearTimeout(timer)
    },
  }
}

/**
 * Returns the server name of a handshake. OpenSSL does not report it for a resumed TLS 1.2 session, which selects no certificate: Node
 * reports no name then, as without SNI. TLS 1.3 reports it.
 */
function serverNameOf(socket: TLSSocket): Accepted['serverName'] {
  if (typeof socket.servername === 'string') return bareName(socket.servername)
  return socket.isSessionReused() && socket.getProtocol() === 'TLSv1.2' ? null : undefined
}

interface ContextsDeps {
  readonly contextFor: (serverName: string) => Promise<SecureContext | undefined>
  /** Maximum number of cached contexts. Each takes about 34 KB, and 170 µs to create. */
  readonly size: number
}

/** Cache of TLS contexts by server name, least recently used first out. */
interface Contexts {
  /**
   * Finds a context, as `SNICallback` of node:tls. A name without a certificate gets the server's default context. Such names are not
   * cached: a certificate may be issued at any time.
   */
  find(serverName: string, done: (error: Error | null, context?: SecureContext) => void): void
  forget(serverName: string): void
}

export function createContexts({ contextFor, size }: ContextsDeps): Contexts {
  const cached = new Map<string, SecureContext>()
  /** Lookups in progress: simultaneous handshakes share one. */
  const lookups = new Map<string, Promise<SecureContext | undefined>>()

  function cache(serverName: string, context: SecureContext): void {
    cached.delete(serverName)
    cached.set(serverName, context)
    if (cached.size <= size) return
    const [oldest] = cached.keys()
    if (oldest !== undefined) cached.delete(oldest)
  }

  async function lookUp(serverName: string): Promise<SecureContext | undefined> {
    const lookup = contextFor(serverName)
    lookups.set(serverName, lookup)
    try {
      const context = await lookup
      // Not cached when forgotten meanwhile: the result may be outdated.
      if (context && lookups.get(serverName) === lookup) cache(serverName, context)
      return context
    } finally {
      if (lookups.get(serverName) === lookup) lookups.delete(serverName)
    }
  }

  return {
    find(serverName, done) {
      const context = cached.get(serverName)
      if (context) {
        cache(serverName, context)
        done(null, context)
        return
      }
      const settled = (found: SecureContext | undefined) => done(null, found)
      const failed = (error: unknown) => done(error instanceof Error ? error : new Error('no certificate', { cause: error }))
      void (lookups.get(serverName) ?? lookUp(serverName)).then(settled, failed)
    },
    forget(serverName) {
      cached.delete(serverName)
      lookups.delete(serverName)
    },
  }
}
