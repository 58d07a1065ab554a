import { writeFile } from 'node:fs/promises'
import { createHash, randomUUIDv7 } from 'node:crypto'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Secret } from '../crds/core.ts'
import { knownHostsFile } from '../crds/formats/ssh-public-key.ts'
import type { DedicatedDatabase } from '../crds/dedicated-database.ts'
import type { Tunnel } from '../crds/tunnel.ts'
import { ENDPOINT_NAME_MAX, TunnelEndpoint, MESH_SUFFIX } from '../crds/tunnel-endpoint.ts'
import type { TunnelPassword } from '../crds/tunnel-password.ts'
import { createEdge, type EdgeDeps, type EdgePorts } from '../edge/edge.ts'
import type { Journal } from '../journal/port.ts'
import { openHostKeys } from '../operator/endpoint/host-keys.ts'
import type { EdgeRuntime } from '../operator/endpoint/runtime.ts'
import { replacing } from '../shared/merge-patch.ts'
import { bindError } from '../process/listeners.ts'
import type { Cache } from '../store/cache.ts'
import { isStoreError, type Store } from '../store/port.ts'
import type { Settings } from './settings.ts'

export interface EdgesDeps {
  readonly store: Store
  readonly settings: Pick<Settings, 'listen' | 'domain' | 'sshPort' | 'httpPort' | 'httpsPort'>
  /** Issuer of the tunnels' certificates. */
  readonly issuer: Pick<TunnelEndpoint['spec'], 'issuer' | 'certificates' | 'acme' | 'tlsSecretName'>
  /** Registers a listener that is called when the Secret with the administrator's own certificate was replaced. */
  readonly onCertificateStored?: ((listener: () => void) => void) | undefined
  /** Host name or address in the connection data for SSH clients. */
  readonly publicHost: string
  /** UUID of the endpoint's region. */
  readonly region: string
  readonly endpoints: Cache<typeof TunnelEndpoint>
  readonly tunnels: Cache<typeof Tunnel>
  readonly databases: Cache<typeof DedicatedDatabase>
  readonly tunnelPasswords: Cache<typeof TunnelPassword>
  readonly secrets: Cache<typeof Secret>
  /** Certificates for host names without a tunnel. */
  readonly unknownHosts: EdgeDeps['unknownHosts']
  readonly journal: Journal
  readonly registry: Registry
  readonly log: Logger
}

/** Edge of this process. */
export interface Edges {
  /** Runtime for the operator. */
  readonly runtime: EdgeRuntime
  /**
   * Opens the edge's ports, and writes them to its TunnelEndpoint and the host keys to the file `knownHosts`. Call it once the
   * caches are synced. @throws MooringError `port_in_use`
   */
  start(knownHosts: string): Promise<RunningEdge>
}

export interface RunningEdge extends AsyncDisposable {
  readonly ports: EdgePorts
}

const GRACE_MS = 1_500
const numbered = (port: number | 'auto'): number => (port === 'auto' ? 0 : port)

interface Named {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly domain: string }
}

/**
 * Returns the name of a domain's endpoint: `tunnel.localhost` → `tunnel-localhost`. An endpoint's domain never changes, so each
 * domain has its own endpoint.
 * @param there endpoints of earlier domains
 */
export function endpointName(domain: string, there: readonly Named[]): string {
  const own = there.find(({ spec }) => spec.domain === domain)
  if (own) return own.metadata.name
  const name = domain.replaceAll('.', '-')
  const isTaken = there.some(({ metadata }) => metadata.name === name)
  if (name.length <= ENDPOINT_NAME_MAX && !name.endsWith(MESH_SUFFIX) && !isTaken) return name
  return `${name.slice(0, ENDPOINT_NAME_MAX - 13)}-${createHash('sha256').update(domain).digest('hex').slice(0, 12)}`
}

export function createEdges(deps: EdgesDeps): Edges {
  const { store, settings, journal, log } = deps
  const listeners = new Set<(name: string) => void>()
  /** Name of the served endpoint. */
  let serving: string | undefined
  deps.onCertificateStored?.(() => notify())

  const runtime: EdgeRuntime = {
    ensure: async ({ metadata }) =>
      metadata.name === serving ? { ready: 1 } : { ready: 0, message: `this process serves the domain ${settings.domain}` },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }

  /** Notifies of a change of the served endpoint. */
  function notify(): void {
    if (serving !== undefined) for (const listener of listeners) listener(serving)
  }

  async function start(knownHosts: string): Promise<RunningEdge> {
    await endLostSessions(journal)
    const name = endpointName(settings.domain, deps.endpoints.list())
    const { privateKeys, publicKeys } = await openHostKeys(store, { name, domain: settings.domain })
    const edge = createEdge({
      ...deps,
      name: 'embedded',
      endpoint: name,
      hostKeys: privateKeys,
      passwords: deps.tunnelPasswords,
      spec: {
        domain: settings.domain,
        publicHttpPort: numbered(settings.httpPort),
        publicHttpsPort: numbered(settings.httpsPort),
      },
    })
    const ports = await listen((host, ports) => edge.listen(host, ports))
    await ensureEndpoint(deps, { name, sshHost: deps.publicHost, ports })
    await writeFile(knownHosts, knownHostsFile(publicKeys, deps.publicHost, ports.ssh), { mode: 0o644 })
    serving = name
    notify()
    log.info({ domain: settings.domain, ...ports }, 'edge started')
    return { ports, [Symbol.asyncDispose]: () => edge.close(GRACE_MS) }
  }

  async function listen(open: (host: string, ports: EdgePorts) => Promise<EdgePorts>): Promise<EdgePorts> {
    const wanted = { ssh: numbered(settings.sshPort), http: numbered(settings.httpPort), https: numbered(settings.httpsPort) }
    try {
      return await open(settings.listen, wanted)
    } catch (error) {
      const { port = 0 } = error as { readonly port?: number }
      const flag = port === wanted.ssh ? '--ssh-port' : port === wanted.http ? '--http-port' : '--https-port'
      throw bindError(error as NodeJS.ErrnoException, { address: settings.listen, port, flag })
    }
  }

  return { runtime, start }
}

interface Found {
  readonly name: string
  readonly sshHost: string
  readonly ports: EdgePorts
}

/**
 * Creates or updates the endpoint of this process, and deactivates those of earlier domains until their domain is served again.
 */
async function ensureEndpoint(
  { store, region, settings, endpoints, issuer }: EdgesDeps,
  { name, sshHost, ports }: Found,
): Promise<void> {
  const listened = { sshHost, ports, publicHttpPort: ports.http, publicHttpsPort: ports.https, active: true, replicas: 1 }
  const spec = { ...listened, ...issuer }
  try {
    await store.create(TunnelEndpoint, { metadata: { name }, spec: { ...spec, region, domain: settings.domain } })
  } catch (error) {
    if (!isStoreError(error, 'already_exists')) throw error
    const before = endpoints.get({ name })?.spec.acme
    await store.mergePatch(
      TunnelEndpoint,
      { name },
      {
        spec: { ...spec, acme: issuer.acme ? replacing(before, issuer.acme) : null, tlsSecretName: issuer.tlsSecretName ?? null },
      },
    )
  }
  for (const { metadata } of endpoints.list()) {
    if (metadata.name !== name)
      await store.mergePatch(TunnelEndpoint, { name: metadata.name }, { spec: { active: false, replicas: 0 } })
  }
}

/** Ends the sessions of an earlier process that was killed. */
async function endLostSessions(journal: Journal): Promise<void> {
  const at = Date.now()
  for (const open of await journal.openSessions()) {
    const ended = { type: 'disconnect', reason: 'edge_lost', durationMs: Math.max(0, at - open.at) } as const
    await journal.connection({ ...open, ...ended, id: randomUUIDv7(), at })
  }
}
