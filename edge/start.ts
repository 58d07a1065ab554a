import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import { Registry } from 'prom-client'
import { EndpointSlice } from '../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../crds/names.ts'
import { DedicatedDatabase } from '../crds/dedicated-database.ts'
import { Tunnel } from '../crds/tunnel.ts'
import { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../crds/tunnel-password.ts'
import { meshName, HOST_KEY_TYPES } from '../shared/edge-objects.ts'
import { openSpool } from '../journal/spool.ts'
import { bindError } from '../process/listeners.ts'
import { watchEventLoop, startStatus } from '../process/status-listener.ts'
import type { Running } from '../process/run.ts'
import { startWithCleanup } from '../process/process-lifetime.ts'
import { createCacheSet, createCache } from '../store/cache.ts'
import type { Store } from '../store/port.ts'
import { createEdge, type Edge, type EdgePorts } from './edge.ts'
import { openMeshFiles } from './mesh/mesh-files.ts'
import { peersIn } from './mesh/peers.ts'
import { routedPasswordIndexes } from './routes.ts'
import type { EdgeSettings } from './settings.ts'
import { openSnapshot } from './snapshot/snapshot.ts'
import { createUnknownHostsCertificate } from './unknown-hosts.ts'
import { MooringError } from '../shared/errors.ts'
import { parseHostKey } from './ssh/host-keys.ts'
import { whenAborted } from '../shared/timers.ts'

export interface StartEdgeDeps {
  readonly settings: EdgeSettings
  readonly log: Logger
  readonly store: Store
  /** Aborts when the process is asked to stop. */
  readonly stopping: AbortSignal
}

/** Maximum wait for peers before the edge is ready. */
const JOIN_MS = 3_000
/**
 * Minimum age of the process before it accepts clients. Sessions of this process and of an earlier container are distinguished by the
 * container's end and start, which are known to the second (operator/journal/lost-sessions.ts). The additional half second covers a
 * clock that is read late.
 */
const FIRST_CLIENT_MS = 1_500
/** Time in which new visitors may still arrive after readiness is withdrawn. */
const LINGER_MS = 5_000

/**
 * Starts an edge in cluster mode. It is ready when all tunnels of its endpoint and the sessions of its peers are known. A later loss of
 * the API does not make it unready. Without the API it starts from its last snapshot. `stop` takes at most the drain time of the
 * settings: clients are asked to reconnect, and visitors are served until they have moved.
 * @throws MooringError `port_in_use`, `files_unreadable`, `invalid_host_key`; the reason of `stopping` when that aborts
 */
export async function startEdge(deps: StartEdgeDeps): Promise<Running> {
  return startWithCleanup((cleanup) => startParts(deps, cleanup))
}

/** Starts the parts of an edge. Each goes onto `cleanup` as it starts, so that they stop in the opposite order. */
async function startParts({ settings, log, store, stopping }: StartEdgeDeps, cleanup: AsyncDisposableStack): Promise<Running> {
  const { endpoint, podName: name, listen } = settings
  let ready = false
  const registry = new Registry()
  cleanup.use(watchEventLoop(registry))
  cleanup.use(await startStatus({ registry, host: listen, port: settings.metricsPort, isReady: () => ready }))
  const hostKeys = await readHostKeys(settings.hostKeys)
  const files = cleanup.use(await openMeshFiles({ directory: settings.meshFiles, log }))
  await mkdir(settings.dataDir, { recursive: true, mode: 0o700 })
  const journal = cleanup.use(
    await openSpool({ directory: join(settings.dataDir, 'journal'), login: settings.journalFiles, log, registry }),
  )
  const snapshot = cleanup.use(await openSnapshot({ store, endpoint, directory: settings.dataDir, log }))

  const caches = follow(snapshot.store, { endpoint, log })
  const ending = new AbortController()
  const work = caches.run(ending.signal)
  cleanup.defer(async () => {
    ending.abort()
    await work
  })
  const found = caches.endpoints.waitFor({ name: endpoint }, (resource) => resource?.spec, stopping)
  const [spec] = await Promise.all([found, beforeAbort(caches.synced(), stopping)])

  const { endpoints, tunnels, databases, passwords, slices } = caches
  const unknownHosts = cleanup.use(createUnknownHostsCertificate({ store, endpoint, endpoints, kept: snapshot.pems, log }))
  const edge = createEdge({
    name,
    endpoint,
    spec,
    hostKeys,
    store,
    endpoints,
    tunnels,
    databases,
    passwords,
    unknownHosts,
    journal,
    registry,
    log,
    pems: snapshot.pems,
    headerValues: snapshot.headerValues,
    mesh: { files, peers: peersIn(slices) },
  })
  cleanup.defer(() => edge.close())
  cleanup.defer(journal.onReplaced(() => edge.reportConnections()))
  await setTimeout(Math.max(0, FIRST_CLIENT_MS - process.uptime() * 1_000))
  const ports = await listenOn(edge, settings)
  await Promise.race([edge.joined(), setTimeout(JOIN_MS, undefined, { ref: false }), whenAborted(stopping)])
  stopping.throwIfAborted()
  ready = true
  log.info({ endpoint, domain: spec.domain, ...ports }, 'edge started')
  return {
    async stop() {
      ready = false
      await drainAndClose(edge, settings.drainSeconds * 1_000)
      await cleanup.disposeAsync()
    },
  }
}

interface About {
  readonly endpoint: string
  readonly log: Logger
}

/** Creates the caches of what an edge reads from the API. Its peers are the pods of one Service. */
function follow(store: Store, { endpoint, log }: About) {
  const onError = (error: unknown) => log.warn({ err: error }, 'a watch was restarted')
  const set = createCacheSet({ store, onError })
  const scope = { namespace: SYSTEM_NAMESPACE, labels: { 'kubernetes.io/service-name': meshName(endpoint) } }
  const slices = createCache({ store, kind: EndpointSlice, scope, onError })
  return {
    endpoints: set.cached(TunnelEndpoint),
    tunnels: set.cached(Tunnel),
    databases: set.cached(DedicatedDatabase),
    passwords: set.cached(TunnelPassword, routedPasswordIndexes),
    slices,
    run: (signal: AbortSignal) => Promise.all([set.run(signal), slices.run(signal)]),
    synced: () => Promise.all([set.synced(), slices.synced()]),
  }
}

/**
 * Opens the ports of the settings.
 * @throws MooringError `port_in_use`
 */
async function listenOn(edge: Edge, settings: EdgeSettings): Promise<EdgePorts> {
  const requested = {
    ssh: portOf(settings.sshPort),
    http: portOf(settings.httpPort),
    https: portOf(settings.httpsPort),
    mesh: portOf(settings.meshPort),
  }
  try {
    return await edge.listen(settings.listen, requested)
  } catch (error) {
    const { port = 0 } = error as { readonly port?: number }
    const [which = 'ssh'] = Object.entries(requested).find(([, number]) => number === port) ?? []
    throw bindError(error as NodeJS.ErrnoException, { address: settings.listen, port, flag: `--${which}-port` })
  }
}

const portOf = (port: number | 'auto'): number => (port === 'auto' ? 0 : port)

/**
 * Drains, then closes the edge. Half of the time is for clients to reconnect one after the other; the rest is for requests that still
 * run.
 */
async function drainAndClose(edge: Edge, graceMs: number): Promise<void> {
  const began = performance.now()
  const lingering = setTimeout(Math.min(LINGER_MS, graceMs / 4))
  await edge.drain({ overMs: graceMs / 2, patienceMs: graceMs / 4 })
  await lingering
  await edge.close(Math.max(0, graceMs - (performance.now() - began)))
}

/**
 * Waits for a promise.
 * @throws the signal's reason when it aborts first
 */
async function beforeAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  await Promise.race([promise, whenAborted(signal)])
  signal.throwIfAborted()
  return promise
}

/**
 * Reads the endpoint's host keys from its mounted Secret, in OpenSSH's format.
 * @throws MooringError `files_unreadable`, `invalid_host_key`
 */
export async function readHostKeys(directory: string): Promise<readonly string[]> {
  try {
    const keys = await Promise.all(HOST_KEY_TYPES.map((type) => readFile(join(directory, type), 'utf8')))
    for (const key of keys) parseHostKey(key)
    return keys
  } catch (cause) {
    if (cause instanceof MooringError) throw cause
    throw new MooringError('files_unreadable', `the host keys in ${directory} are not readable`, { cause })
  }
}
