import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { addressList } from '../crds/formats/address-list.ts'
import type { Tunnel } from '../crds/tunnel.ts'
import type { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import type { TunnelPassword } from '../crds/tunnel-password.ts'
import type { JournalWriter } from '../journal/port.ts'
import type { Cache } from '../store/cache.ts'
import type { Store } from '../store/port.ts'
import { createCertificates } from './certificates.ts'
import { systemClock } from './clock.ts'
import { returnMemoryAfterLoad } from './memory-after-load.ts'
import { createMesh, type MeshMembership } from './mesh/mesh.ts'
import { ticketKeysOf } from './mesh/ticket-keys.ts'
import type { PemStore } from './pem-store.ts'
import type { RenewedCertificate } from './proxy/listener.ts'
import { createProxy } from './proxy/proxy.ts'
import { createRoutes } from './routes.ts'
import { createSessions } from './sessions.ts'
import { DEFAULT_SSH_LIMITS } from './ssh/limits.ts'
import type { DrainPlan } from './ssh/drain.ts'
import { createSshServer } from './ssh/server.ts'

export interface EdgeDeps {
  /** Name of this edge in the journal: of its pod, or `embedded`. */
  readonly name: string
  /** Name of the TunnelEndpoint that it serves. */
  readonly endpoint: string
  /** A public port of 0 is the port that it listens on. */
  readonly spec: Pick<TunnelEndpoint['spec'], 'domain' | 'publicHttpPort' | 'publicHttpsPort' | 'proxyProtocol'>
  /** Private host keys, PEM. */
  readonly hostKeys: readonly string[]
  readonly tunnels: Cache<typeof Tunnel>
  /** With {@link routedPasswordIndexes}. */
  readonly passwords: Cache<typeof TunnelPassword>
  readonly endpoints: Cache<typeof TunnelEndpoint>
  /** For the certificates, each by its name. */
  readonly store: Pick<Store, 'get'>
  /** For handshakes that name no tunnel: those visitors are told so. They are refused while there is none. */
  readonly unknownHosts?: RenewedCertificate | undefined
  /** Where those of tunnels outlive the process; nowhere, when absent. */
  readonly pems?: PemStore | undefined
  /** The other edges of the endpoint; it is alone, when absent. */
  readonly mesh?: MeshMembership | undefined
  readonly journal: JournalWriter
  readonly registry: Registry
  readonly log: Logger
}

/** Where an edge listens; 0 is any free port. */
export interface EdgePorts {
  readonly ssh: number
  readonly http: number
  readonly https: number
  /** For the other edges. */
  readonly mesh?: number | undefined
}

export interface Edge {
  /** Opens the ports, and resolves with those it got. @throws Error when one cannot be had; the others are closed by `close` */
  listen(host: string, ports: EdgePorts): Promise<EdgePorts>
  /** Resolves when it knows the sessions of all edges that answer. */
  joined(): Promise<void>
  /** Tells the journal once more which clients are here: it is another one. */
  reportConnections(): void
  /** Asks clients to go and come back elsewhere, while visitors are served on. Resolves when the last was asked. */
  drain(plan: DrainPlan): Promise<void>
  /** Takes nobody new, lets requests finish for `graceMs`, and ends the rest. The first call counts. */
  close(graceMs?: number): Promise<void>
}

/** One edge: it speaks SSH to the clients of an endpoint's tunnels and HTTP to their visitors, and shows each to the other. */
export function createEdge(deps: EdgeDeps): Edge {
  const { endpoint, spec, tunnels, passwords, endpoints, journal, registry, log } = deps
  const { domain } = spec
  const publicPorts = { http: spec.publicHttpPort, https: spec.publicHttpsPort }
  const routes = createRoutes({
    ...{ endpoint, domain, tunnels, passwords, date: systemClock.date },
    onError: (error) => log.error({ err: error }, 'a change of a tunnel was not taken up'),
  })
  const sessions = createSessions()
  const balancers = spec.proxyProtocol?.trustedCIDRs ?? []
  const trusted = balancers.length > 0 ? addressList(balancers) : undefined
  const isWildcard = () => endpoints.get({ name: endpoint })?.spec.certificates === 'wildcard'
  const certificates = createCertificates({ store: deps.store, endpoint, routes, isWildcard, kept: deps.pems, log }, (name) =>
    proxy.forget(name),
  )
  const proxy = createProxy({
    ...{ routes, sessions, journal, registry, log, ...systemClock },
    contextFor: (name) => certificates.contextFor(name),
    unknownHosts: deps.unknownHosts,
    publicPorts,
    ticketKeys: deps.mesh && ticketKeysOf(deps.mesh.files.current()),
    trusted,
  })
  const mesh =
    deps.mesh &&
    createMesh({
      ...deps.mesh,
      ...{ name: deps.name, endpoint, sessions, registry, log },
      onNewer: (hostname) => ssh.probe(hostname),
      onRetired: (session) => proxy.retire(session),
    })
  const ssh = createSshServer({
    ...{ edge: deps.name, hostKeys: deps.hostKeys, routes, journal, registry, log, ...systemClock },
    sessions: mesh?.own ?? sessions,
    address: () => {
      const { sshHost = domain, ports } = endpoints.get({ name: endpoint })?.spec ?? {}
      return { sshHost, sshPort: ports?.ssh ?? sshPort, httpsPort: publicPorts.https }
    },
    onRetired: (session) => proxy.retire(session),
    ...{ limits: DEFAULT_SSH_LIMITS, trusted },
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
    memory[Symbol.dispose]()
  }

  return {
    async listen(host, ports) {
      // Visitors before clients: no redirect may name a port that is not known yet.
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
