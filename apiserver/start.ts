import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Running } from '../process/run.ts'
import { auditPath, createValueDigest } from '../journal/audit-entry.ts'
import { createAddressGuard } from '../shared/outside-addresses.ts'
import { startStatus } from '../process/status-listener.ts'
import { startWithCleanup } from '../process/process-lifetime.ts'
import type { Access } from '../store/access.ts'
import { createCacheSet } from '../store/cache.ts'
import type { Store } from '../store/port.ts'
import { type AuditListenerDeps, startAuditListener } from './journal/audit-webhook.ts'
import { createApi, type ApiCaches, createApiCaches, createTunnelCaches } from './api.ts'
import { discoveryOf } from './auth/issuer.ts'
import { createOutsideIssuers } from './auth/trusted-issuers.ts'
import { BEHIND_MS } from './resources/cache-waits.ts'
import { openApiJournal } from './journal/journal-deps.ts'
import { createMetrics } from './http/access-log.ts'
import { type MountedFiles, openMountedFiles } from './mounted-files.ts'
import { LISTENERS, type Listener } from './http/route.ts'
import { startServers } from './http/servers.ts'
import type { ApiServerSettings } from './settings.ts'

/** Drain time of the servers: longer than the longest answer, so that requests in flight finish normally. */
const DRAIN_MS = 35_000

export interface ApiServerDeps {
  readonly settings: ApiServerSettings
  readonly log: Logger
  readonly store: Store
  readonly access: (caches: ApiCaches) => Access
}

/**
 * Starts the API of the cluster mode over `store`. It listens at once and becomes ready when the initial lists of its caches are complete; a later
 * restart of the Kubernetes API server does not make it unready. `stop` lets requests in flight finish.
 * @throws MooringError `files_unreadable`, `port_in_use`, `port_forbidden`
 */
export async function startApiServer(deps: ApiServerDeps): Promise<Running> {
  return startWithCleanup((cleanup) => startParts(deps, cleanup))
}

/** Starts the parts. Each goes onto `cleanup` when it starts, so that they stop in the reverse order. */
async function startParts({ settings, log, store, access }: ApiServerDeps, cleanup: AsyncDisposableStack): Promise<Running> {
  let synced = false
  let ready = false
  const isReady = () => ready
  const metrics = createMetrics()
  cleanup.defer(() => metrics.close())
  cleanup.use(await startStatus({ registry: metrics.registry, host: settings.listen, port: settings.metricsPort, isReady }))
  const files = cleanup.use(await openMountedFiles({ directory: settings.files, tlsDirectory: settings.tlsFiles, log }))
  const cacheSet = createCacheSet({ store, onError: (error) => log.warn({ err: error }, 'a watch was restarted') })
  const caches = createApiCaches(cacheSet)
  const issuers = createOutsideIssuers({ issuers: settings.issuer, log })
  const { journalFiles: login, dataDir } = settings
  const journal =
    login && cleanup.use(await openApiJournal({ login, directory: join(dataDir, 'spool'), log, registry: metrics.registry }))
  const ofTunnels = journal ? createTunnelCaches(cacheSet) : undefined
  const addressGuard = createAddressGuard({
    privateAddresses: settings.webhookPrivateAddresses,
    allowedNetworks: settings.webhookAllowedNetworks,
    own: { domains: () => ofTunnels?.endpoints.list().map(({ spec }) => spec.domain) ?? [] },
  })
  const tunnels = ofTunnels && journal ? { ...ofTunnels, journal, addressGuard } : undefined

  function api(): Readonly<Record<Listener, RequestListener>> {
    const { issuer, jwks, tokenSecret } = files.current()
    return createApi({
      store,
      caches,
      tunnels,
      tokenSecret,
      metrics,
      log,
      isReady,
      issuers,
      behindMs: BEHIND_MS,
      access: access(caches),
      isSynced: () => synced,
      issuer: { issuer, jwks, discovery: discoveryOf(issuer) },
      limits: settings,
      backups: settings.backups,
      trustedProxies: settings.trustedProxies,
    })
  }

  let apps = api()
  const listener = (name: Listener) => ({
    app: ((req, res) => apps[name](req, res)) satisfies RequestListener,
    https: { port: portOf(settings[`${name}Port`]), flag: `--${name}-port` },
  })
  const servers = await startServers({
    host: settings.listen,
    certificate: () => files.current(),
    listeners: { shared: listener('shared'), dedicated: listener('dedicated') },
  })
  cleanup.defer(() => servers.close(DRAIN_MS))
  const audit = journal ? cleanup.use(await startAuditListener(auditDeps(settings, files, { journal, log }))) : undefined
  files.onChange(() => {
    apps = api()
    servers.renewCertificate()
    audit?.renewCertificate()
  })

  const stopping = new AbortController()
  const work = cacheSet.run(stopping.signal)
  void cacheSet.synced().then(() => {
    if (stopping.signal.aborted) return
    synced = true
    ready = true
    log.info({ ports: LISTENERS.map((name) => servers.addresses[name].https.port) }, 'the API is served')
  })
  return {
    async stop() {
      ready = false
      // Requests in flight still read the caches, so the caches stop last.
      await cleanup.disposeAsync()
      stopping.abort()
      await work
    },
  }
}

function auditDeps(
  { listen, auditPort }: ApiServerSettings,
  files: Pick<MountedFiles, 'current'>,
  parts: Pick<AuditListenerDeps, 'journal' | 'log'>,
): AuditListenerDeps {
  return {
    ...parts,
    host: listen,
    port: portOf(auditPort),
    now: () => new Date(),
    certificate: () => files.current().inside,
    path: () => auditPath(files.current().tokenSecret),
    digest: () => createValueDigest(files.current().tokenSecret),
  }
}

const portOf = (port: number | 'auto'): number => (port === 'auto' ? 0 : port)
