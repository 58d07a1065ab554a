import { type SecureContext, createSecureContext } from 'node:tls'
import type { Socket } from 'node:net'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { addressList } from '../../../crds/formats/address-list.ts'
import { TunnelConfig } from '../../../crds/tunnel-config.ts'
import { type EdgeClock, systemClock } from '../../../edge/clock.ts'
import type { Route } from '../../../edge/route.ts'
import { PROXY_LIMITS, type ProxyLimits } from '../../../edge/proxy/limits.ts'
import type { RenewedCertificate } from '../../../edge/proxy/listener.ts'
import { createProxy } from '../../../edge/proxy/proxy.ts'
import type { RequestRecord } from '../../../journal/port.ts'
import { createTcpSessions } from './tcp-sessions.ts'
import { freshHostname } from './ssh-edge.ts'
import { http2Client, type Http2Client } from './http2.ts'
import { rawBackend } from './raw-http.ts'

export const DOMAIN = 't.test'

type Config = Partial<TunnelConfig>

/** Returns the route of a tunnel, without the resources behind it. */
function routeTo(hostname: string, config: Config = {}): Route {
  const whole = TunnelConfig.parse(config)
  return {
    id: `uid-${hostname}`,
    namespace: 'acme--prod',
    name: 'web',
    hostname,
    host: `${hostname}.${DOMAIN}`,
    url: `https://${hostname}.${DOMAIN}`,
    config: whole,
    ingress: addressList(whole.ingressIPWhitelist),
    sshSources: addressList(whole.sshIPWhitelist),
    passwords: [],
  }
}

interface Options {
  readonly limits?: Partial<ProxyLimits>
  readonly contextFor?: (serverName: string) => Promise<SecureContext | undefined>
  readonly unknownHosts?: RenewedCertificate
  readonly trusted?: readonly string[]
  readonly challenge?: (host: string, token: string) => string | undefined
  /** Returns the key authorization of the challenge tls-alpn-01. */
  readonly tlsChallenge?: (serverName: string) => string | undefined
  readonly clock?: EdgeClock
}

/** Starts a proxy on loopback with simulated tunnels. `records` has what it writes to the journal. */
export async function startProxy(options: Options = {}) {
  const { limits, contextFor = async () => undefined, unknownHosts, trusted, challenge, clock = systemClock } = options
  const routes = new Map<string, Route>()
  const listeners = new Set<(hostname: string) => void>()
  const tell = (hostname: string) => listeners.forEach((listener) => listener(hostname))
  const sessions = createTcpSessions()
  const records: RequestRecord[] = []
  const registry = new Registry()
  const failures: unknown[] = []
  const proxy = createProxy({
    routes: {
      domain: DOMAIN,
      get: (hostname) => routes.get(hostname),
      onChange(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
    sessions,
    journal: { request: (record) => void records.push(record) },
    contextFor,
    unknownHosts,
    limits: { ...PROXY_LIMITS, ...limits },
    registry,
    log: { warn: (...said: unknown[]) => void failures.push(said), error: (...said: unknown[]) => void failures.push(said) },
    ...clock,
    publicPorts: { http: 80, https: 443 },
    trusted: trusted && addressList(trusted),
    ...(challenge && { challenge }),
    tlsChallenge: options.tlsChallenge,
  })
  const httpPort = await proxy.listenHttp('127.0.0.1', 0)
  const httpsPort = await proxy.listenHttps('127.0.0.1', 0)
  return {
    proxy,
    sessions,
    records,
    registry,
    failures,
    httpPort,
    httpsPort,
    /** Adds or changes a tunnel, with a client that forwards to `port`. */
    serve(hostname: string, port: number | undefined, config: Config = {}) {
      const route = routeTo(hostname, config)
      routes.set(hostname, route)
      tell(hostname)
      if (port !== undefined) sessions.connect(hostname, port)
      return route
    },
    /** Removes the tunnel; its client stays connected. */
    withdraw(hostname: string) {
      routes.delete(hostname)
      tell(hostname)
    },
    [Symbol.asyncDispose]: () => proxy.close(),
  }
}

/** Starts a tunnel to a backend with the test's responses, and an HTTP/2 visitor that connects at its first request. */
export async function tunnelBefore(
  edge: Awaited<ReturnType<typeof startProxy>>,
  answer: (received: string, socket: Socket) => void,
  config: Partial<TunnelConfig> = {},
) {
  const cleanup = new AsyncDisposableStack()
  const backend = cleanup.use(await rawBackend(answer))
  const { hostname, host } = edge.serve(freshHostname(), backend.port, config)
  let visitor: Http2Client | undefined
  return {
    hostname,
    host,
    received: backend.received,
    get visitor() {
      return (visitor ??= cleanup.use(http2Client(edge.httpsPort, host)))
    },
    [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
  }
}

/** Returns a TLS context with a self-signed certificate for all names below the domain. */
export const selfSigned = (domain: string): SecureContext => createSecureContext(selfSignedPem(domain))

/** Returns the same certificate as PEM. A client that trusts it as a CA accepts it. */
export function selfSignedPem(domain: string): { readonly key: string; readonly cert: string } {
  const folder = mkdtempSync(join(tmpdir(), 'self-signed-'))
  try {
    const [key, cert] = [join(folder, 'key'), join(folder, 'cert')]
    const of = ['-subj', `/CN=${domain}`, '-addext', `subjectAltName=DNS:*.${domain},DNS:${domain}`]
    const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-keyout', key, '-out', cert]
    execFileSync('openssl', ['req', '-x509', ...made, ...of], { stdio: 'ignore' })
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
