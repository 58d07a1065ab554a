import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { addressList } from '../crds/formats/address-list.ts'
import type { DedicatedDatabase } from '../crds/dedicated-database.ts'
import type { Tunnel } from '../crds/tunnel.ts'
import type { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import type { TunnelPassword } from '../crds/tunnel-password.ts'
import type { JournalWriter } from '../journal/port.ts'
import type { Cache } from '../store/cache.ts'
import type { Store } from '../store/port.ts'
import { createCertificates } from './certificates.ts'
import { systemClock } from './clock.ts'
import { returnMemoryAfterLoad } from './memory.ts'
import { createEdgeHeaderValues, type HeaderValueStore } from './header-values.ts'
import { createMesh, type MeshMembership } from './mesh/mesh.ts'
import { ticketKeysOf } from './mesh/mesh-files.ts'
import type { PemStore } from './pems.ts'
import type { RenewedCertificate } from './proxy/listener.ts'
import { createProxy } from './proxy/proxy.ts'
import { createRoutes } from './routes.ts'
import { createSessions } from './sessions.ts'
import { DEFAULT_SSH_LIMITS } from './ssh/limits.ts'
import type { DrainPlan } from './ssh/drain.ts'
import { createSshServer } from './ssh/server.ts'

export interface EdgeDeps {
  /** Name of this edge in the journal: the name of its pod, or `embedded`. */
  readonly name: string
  /** Name of the TunnelEndpoint that the edge serves. */
  readonly endpoint: string
  /** A public port of 0 stands for the port that the edge listens on. */
  readonly spec: Pick<TunnelEndpoint['spec'], 'domain' | 'publicHttpPort' | 'publicHttpsPort' | 'proxyProtocol'>
  /** Private host keys, PEM. */
  readonly hostKeys: readonly string[]
  readonly tunnels: Cache<typeof Tunnel>
  /** Dedicated databases. Absent: the edge opens none. */
  readonly databases?: Cache<typeof DedicatedDatabase> | undefined
  /** Passwords, indexed by {@link routedPasswordIndexes}. */
  readonly passwords: Cache<typeof TunnelPassword>
  readonly endpoints: Cache<typeof TunnelEndpoint>
  /** Store that certificates are read from, by name. */
  readonly store: Pick<Store, 'get'>
  /** Certificate for handshakes that name no tunnel, so that the visitor gets an error page. Without it the handshake fails. */
  readonly unknownHosts?: RenewedCertificate | undefined
  /** Storage in which certificates of tunnels outlive the process; without it they are kept in memory only. */
  readonly pems?: PemStore | undefined
  /** Storage in which header values from Secrets outlive the process; without it they are kept in memory only. */
  readonly headerValues?: HeaderValueStore | undefined
  /** Membership among the edges of the endpoint; without it this edge is the only one. */
  readonly mesh?: MeshMembership | undefined
  readonly journal: JournalWriter
  readonly registry: Registry
  readonly log: Logger
}

/** Ports that an edge listens on; 0 is any free port. */
export interface EdgePorts {
  readonly ssh: number
  readonly http: number
  readonly https: number
  /** Port for the other edges of the endpoint. */
  readonly mesh?: number | undefined
}

export interface Edge {
  /**
   * Opens the ports and resolves with the port numbers.
   * @throws Error when a port cannot be opened; `close` closes the others
   */
  listen(host: string, ports: EdgePorts): Promise<EdgePorts>
  /** Resolves when the sessions of all edges that answer are known. */
  joined(): Promise<void>
  /** Reports the connected clients to the journal again, after the journal was replaced. */
  reportConnections(): void
  /** Asks clients to reconnect to another edge while visitors are still served. Resolves when the last client was asked. */
  drain(plan: DrainPlan): Promise<void>
  /**
   * Stops accepting, lets running requests finish for at most `graceMs` milliseconds, then ends the rest. Only the first call counts.
   */
  close(graceMs?: number): Promise<void>
}

/** Maximum wait of a start for header values from Secrets: without them such headers are removed. */
const HEADER_VALUES_MS = 3_000

/**
 * Creates an edge: the SSH server for the clients of an endpoint's tunnels, and the HTTP proxy that forwards visitors' requests to
 * them.
 */
export function createEdge(deps: EdgeDeps): Edge {
  const { endpoint, spec, tunnels, passwords, endpoints, journal, registry, log } = deps
  const { domain } = spec
  const publicPorts = { http: spec.publicHttpPort, https: spec.publicHttpsPort }
  const headerValues = createEdgeHeaderValues({ store: deps.store, endpoint, kept: deps.headerValues, log })
  const routes = createRoutes({
    endpoint,
    domain,
    tunnels,
    passwords,
    headerValues,
    databases: deps.databases,
    date: systemClock.date,
    onError: (error) => log.error({ err: error }, 'applying a change of a tunnel failed'),
  })
  const visited = routes.tunnels
  const sessions = createSessions()
  const balancers = spec.proxyProtocol?.trustedCIDRs ?? []
  const trusted = balancers.length > 0 ? addressList(balancers) : undefined
  const isWildcard = () => endpoints.get({ name: endpoint })?.spec.certificates === 'wildcard'
  const certificates = createCertificates(
    { store: deps.store, endpoint, routes: visited, isWildcard, kept: deps.pems, log },
    (name) => proxy.forget(name),
  )
  /** Response to a challenge (RFC 8555, section 8.1), from the resources alone: every edge gives the same. */
  function keyAuthorization(host: string, token: string): string | undefined {
    const suffix = `.${domain}`
    const route = host.endsWith(suffix) ? visited.get(host.slice(0, -suffix.length)) : undefined
    const thumbprint = endpoints.get({ name: endpoint })?.status?.acmeThumbprint
    return route?.challengeToken === token && thumbprint !== undefined ? `${token}.${thumbprint}` : undefined
  }
  /** Response to the challenge tls-alpn-01 of a host under order; undefined for all others. */
  function tlsKeyAuthorization(host: string): string | undefined {
    const served = endpoints.get({ name: endpoint })
    const [hostname = ''] = host.split('.')
    const token = visited.get(hostname)?.challengeToken
    const isTls = served?.spec.acme?.challenge === 'tls-alpn-01'
    return isTls && token !== undefined ? keyAuthorization(host, token) : undefined
  }
  const proxy = createProxy({
    routes: visited,
    sessions,
    journal,
    registry,
    log,
    ...systemClock,
    contextFor: (name) => certificates.contextFor(name),
    unknownHosts: deps.unknownHosts,
    publicPorts,
    challenge: (host, token) => keyAuthorization(host, token),
    tlsChallenge: tlsKeyAuthorization,
    ticketKeys: deps.mesh && ticketKeysOf(deps.mesh.files.current()),
    trusted,
  })
  const mesh =
    deps.mesh &&
    createMesh({
      ...deps.mesh,
      name: deps.name,
      endpoint,
      sessions,
      registry,
      log,
      onNewer: (hostname) => ssh.probe(hostname),
      onRetired: (session) => proxy.retire(session),
    })
  const ssh = createSshServer({
    edge: deps.name,
    hostKeys: deps.hostKeys,
    routes,
    journal,
    registry,
    log,
    ...systemClock,
    sessions: mesh?.own ?? sessions,
    address: () => {
      const { sshHost = domain, ports } = endpoints.get({ name: endpoint })?.spec ?? {}
      return { sshHost, sshPort: ports?.ssh ?? sshPort, httpsPort: publicPorts.https }
    },
    onRetired: (session) => proxy.retire(session),
    limits: DEFAULT_SSH_LIMITS,
    trusted,
  })

  let sshPort = 0
  const memory = returnMemoryAfterLoad()

  let closing: Promise<void> | undefined
  async function close(graceMs: number): Promise<void> {
    await proxy.close(graceMs)
    await ssh.close()
    await mesh?.close()
    certificates[Symbol.dispose]()
    routes[Symbol.dispose]()
    headerValues[Symbol.dispose]()
    memory[Symbol.dispose]()
  }

  return {
    async listen(host, ports) {
      await headerValues.loaded(HEADER_VALUES_MS)
      // The visitors' ports open before the SSH port: no redirect may name a port that is not known yet.
      const http = await proxy.listenHttp(host, ports.http)
      const https = await proxy.listenHttps(host, ports.https)
      publicPorts.http ||= http
      publicPorts.https ||= https
      const meshPort = await mesh?.listen(host, ports.mesh ?? 0)
      sshPort = await ssh.listen(host, ports.ssh)
      return { ssh: sshPort, http, https, mesh: meshPort }
    },
    joined: () => mesh?.joined() ?? Promise.resolve(),
    reportConnections: () => ssh.reportConnections(),
    async drain(plan) {
      proxy.drain()
      await ssh.drain(plan)
    },
    close: (graceMs = 0) => (closing ??= close(graceMs)),
  }
}
