import {
  createServer as createHttpServer,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { bindError, closerOf } from '../../process/listeners.ts'
import { respondToPlainHttp } from '../../process/plain-http.ts'
import {
  respondToClientError,
  respondToConnect,
  respondToExpectation,
  plainHttpResponse,
  requireHost,
  requireLoopbackHost,
} from './client-error.ts'
import { type Listener, LISTENERS } from './route.ts'

const LOOPBACK = '127.0.0.1'
const CLOSE_DEADLINE_MS = 4_000

/** Options of all servers, with the time limits for receiving a request. The time of the answer is limited by its route (at most 30 s). */
const OPTIONS: ServerOptions = {
  // Node's own rejection has no body; `requireHost` sends one.
  requireHostHeader: false,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  // Longer than the 60 s of common load balancers: the side that opened the connection should close it.
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5_000,
}

/** Idle time after which a connection is closed: its caller does not read. Longer than any answer takes. */
const STALLED_MS = 120_000

/** Port to listen on; 0 selects a free one. `flag` is the setting that errors name, e.g. `--shared-port`. */
export interface Port {
  readonly port: number
  readonly flag: string
}

export interface ListenerConfig {
  readonly app: RequestListener
  readonly https: Port
  /** Port of plain HTTP, on loopback only. Off when absent. */
  readonly http?: Port | undefined
}

export interface ServersDeps {
  readonly listeners: Readonly<Record<Listener, ListenerConfig>>
  /** Address of the HTTPS listeners. */
  readonly host: string
  /** Returns the current key and certificate chain, in PEM. */
  readonly certificate: () => { readonly key: string; readonly certificate: string }
  /** Host names that the plain-HTTP listeners accept in addition to those of loopback, for a local proxy that forwards `Host`. */
  readonly publicNames?: readonly string[]
}

export interface BoundListener {
  readonly https: AddressInfo
  readonly http?: AddressInfo
}

export interface RunningServers {
  readonly addresses: Readonly<Record<Listener, BoundListener>>
  /** Reads the certificate again and uses it for new connections. */
  renewCertificate(): void
  /** Stops accepting, lets requests in flight finish until the deadline (default 4 s), then closes the remaining connections. */
  close(deadlineMs?: number): Promise<void>
}

/** Starts the servers of both listeners. After an error no server is left. @throws MooringError `port_in_use`, `port_forbidden`, `address_unavailable` */
export async function startServers({ listeners, host, certificate, publicNames }: ServersDeps): Promise<RunningServers> {
  const closers: ((deadlineMs: number) => Promise<void>)[] = []
  const secure: HttpsServer[] = []
  const closing = new AbortController()
  const keyAndCert = () => {
    const { key, certificate: cert } = certificate()
    return { key, cert, minVersion: 'TLSv1.2' } as const
  }

  async function listen(server: Server, address: string, port: Port): Promise<AddressInfo> {
    server.on('clientError', respondToClientError).on('checkExpectation', respondToExpectation).on('connect', respondToConnect)
    server.setTimeout(STALLED_MS)
    endIdleOnClose(server, closing.signal)
    endStreamsOnClose(server, closing.signal)
    closers.push(closerOf(server))
    return bind(server, address, port)
  }

  async function start({ app, https, http }: ListenerConfig): Promise<BoundListener> {
    const server = createHttpsServer({ ...OPTIONS, ...keyAndCert() }, requireHost(app))
    secure.push(server)
    respondToPlainHttp(server, plainHttpResponse)
    const bound = await listen(server, host, https)
    if (!http) return { https: bound }
    const plain = createHttpServer(OPTIONS, requireHost(requireLoopbackHost(app, publicNames)))
    return { https: bound, http: await listen(plain, LOOPBACK, http) }
  }

  async function close(deadlineMs = CLOSE_DEADLINE_MS): Promise<void> {
    closing.abort()
    await Promise.all(closers.map((end) => end(deadlineMs)))
  }

  const addresses = {} as Record<Listener, BoundListener>
  try {
    for (const listener of LISTENERS) addresses[listener] = await start(listeners[listener])
  } catch (error) {
    await close(0)
    throw error
  }
  return {
    addresses,
    close,
    renewCertificate: () => secure.forEach((server) => server.setSecureContext(keyAndCert())),
  }
}

function bind(server: Server, address: string, { port, flag }: Port): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    // The handler stays registered: a failed accept (no free descriptor) is an `error` event of the server and would otherwise end the process.
    server.on('error', (error: NodeJS.ErrnoException) => reject(bindError(error, { address, port, flag })))
    server.listen(port, address, () => resolve(server.address() as AddressInfo))
  })
}

/** Closes connections that become idle after `close`, which itself only closes those idle at that moment. */
function endIdleOnClose(server: Server, closing: AbortSignal): void {
  server.on('request', (_req, res) => {
    if (closing.aborted) res.setHeader('Connection', 'close')
    res.once('close', () => {
      if (closing.aborted) setImmediate(() => server.closeIdleConnections())
    })
  })
}

/** Ends open event streams on close: they have no end to wait for. */
function endStreamsOnClose(server: Server, closing: AbortSignal): void {
  const open = new Set<ServerResponse>()
  server.on('request', (_req, res: ServerResponse) => {
    open.add(res)
    res.once('close', () => open.delete(res))
  })
  closing.addEventListener('abort', () => {
    for (const res of open) if (String(res.getHeader('Content-Type')).startsWith('text/event-stream')) res.end()
  })
}
