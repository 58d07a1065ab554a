import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { addressList } from '../crds/address-list.ts'
import type { Secret } from '../crds/core.ts'
import type { Tunnel } from '../crds/tunnel.ts'
import type { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import type { TunnelPassword } from '../crds/tunnel-password.ts'
import type { JournalWriter } from '../journal/port.ts'
import type { Cache } from '../store/cache.ts'
import { createCertificates } from './certificates.ts'
import { createProxy } from './proxy/proxy.ts'
import { createRoutes } from './routes.ts'
import { createSessions } from './sessions.ts'
import { DEFAULT_SSH_LIMITS } from './ssh/limits.ts'
import { createSshServer } from './ssh/server.ts'

export interface EdgeDeps {
  /** Name of the TunnelEndpoint that it serves. */
  readonly endpoint: string
  /** A public port of 0 is the port that it listens on. */
  readonly spec: Pick<TunnelEndpoint['spec'], 'domain' | 'publicHttpPort' | 'publicHttpsPort' | 'proxyProtocol'>
  /** Private host keys, PEM. */
  readonly hostKeys: readonly string[]
  readonly tunnels: Cache<typeof Tunnel>
  /** With {@link routedPasswordIndexes}. */
  readonly passwords: Cache<typeof TunnelPassword>
  readonly secrets: Cache<typeof Secret>
  readonly journal: JournalWriter
  readonly registry: Registry
  readonly log: Logger
}

/** Where an edge listens; 0 is any free port. */
export interface EdgePorts {
  readonly ssh: number
  readonly http: number
  readonly https: number
}

export interface Edge {
  /** Opens the ports, and resolves with those it got. @throws Error when one cannot be had; the others are closed by `close` */
  listen(host: string, ports: EdgePorts): Promise<EdgePorts>
  /** Takes nobody new, lets requests finish for `graceMs`, and ends the rest. */
  close(graceMs?: number): Promise<void>
}

/** One edge: it speaks SSH to the clients of an endpoint's tunnels and HTTP to their visitors, and shows each to the other. */
export function createEdge(deps: EdgeDeps): Edge {
  const { endpoint, spec, tunnels, passwords, secrets, journal, registry, log } = deps
  const { domain } = spec
  const publicPorts = { http: spec.publicHttpPort, https: spec.publicHttpsPort }
  const now = () => Date.now()
  const routes = createRoutes({
    ...{ endpoint, domain, tunnels, passwords },
    onError: (error) => log.error({ err: error }, 'a change of a tunnel was not taken up'),
  })
  const sessions = createSessions()
  const trusted = spec.proxyProtocol?.trustedCIDRs ?? []
  const certificates = createCertificates({ secrets, endpoint, domain }, (name) => proxy.forget(name))
  const proxy = createProxy({
    ...{ routes, sessions, journal, registry, log, now },
    contextFor: (name) => certificates.contextFor(name),
    publicPorts,
    trusted: trusted.length > 0 ? addressList(trusted) : undefined,
  })
  const ssh = createSshServer({
    ...{ hostKeys: deps.hostKeys, routes, sessions, journal, registry, log, now },
    limits: DEFAULT_SSH_LIMITS,
  })

  return {
    async listen(host, ports) {
      // Visitors before clients: no redirect may name a port that is not known yet.
      const http = await proxy.listenHttp(host, ports.http)
      const https = await proxy.listenHttps(host, ports.https)
      publicPorts.http ||= http
      publicPorts.https ||= https
      return { ssh: await ssh.listen(host, ports.ssh), http, https }
    },
    async close(graceMs = 0) {
      await proxy.close(graceMs)
      await ssh.close()
      certificates[Symbol.dispose]()
      routes[Symbol.dispose]()
    },
  }
}
