import type { Logger } from 'pino'
import { Registry } from 'prom-client'
import { openRepository } from '../backup/repository/open.ts'
import type { ValueDigest } from '../journal/audit-entry.ts'
import { regionWithId } from '../crds/region.ts'
import { SYSTEM_NAMESPACE } from '../crds/names.ts'
import { createAddressGuard } from '../shared/outside-addresses.ts'
import type { WebhookSecrets } from '../shared/webhook-secrets.ts'
import { watchEventLoop, startStatus } from '../process/status-listener.ts'
import type { Running } from '../process/run.ts'
import { startWithCleanup } from '../process/process-lifetime.ts'
import { type CacheSet, createCacheSet } from '../store/cache.ts'
import { createKubernetesStore, type KubernetesStore } from '../store/kubernetes.ts'
import { loadClusterConfig } from '../store/kubernetes/credentials.ts'
import { createOperatorCaches, createTunnelCaches, type OperatorCaches } from './caches.ts'
import { createAcme } from './acme/acme.ts'
import { createAdminCertificate } from './certificates/renewing-certificate.ts'
import type { KeyPair } from './certificates/local-ca.ts'
import { applyCrds } from './crd-apply.ts'
import { createKubernetesEdges } from './endpoint/kubernetes/kubernetes-edges.ts'
import type { EdgePodSettings } from './endpoint/kubernetes/settings.ts'
import { createKubernetesEvents } from './events/events.ts'
import { keepApiSecret } from './installation/api-secret.ts'
import { keepAuditWebhook } from './installation/audit-webhook.ts'
import { keepCa } from './installation/ca.ts'
import { keepPodMonitor } from './installation/pod-monitor.ts'
import { createClusterJournal } from './journal/cluster-journal.ts'
import { createOperator } from './operator.ts'
import { createFencedStore, createLeaderElection } from './runtime/leader.ts'
import { ADMIN_USER } from './server/credentials.ts'
import { repositoryUrl } from './server/kubernetes/backup/settings.ts'
import { createKubernetesRuntime } from './server/kubernetes/kubernetes-runtime.ts'
import { apiNames, type ClusterOperatorSettings, operatorSettings, podSettings } from './settings.ts'
import { localIssuer } from './tunnel/certificate-issuer.ts'
import { certificatesOf } from './tunnel/resources.ts'
import { createOwnServices } from './webhooks/own-services.ts'
import { Namespace } from '../crds/core.ts'
import type { Store } from '../store/port.ts'

export interface StartOperatorDeps {
  readonly settings: ClusterOperatorSettings
  readonly log: Logger
  readonly env: Readonly<Record<string, string | undefined>>
}

const LEASE = { namespace: SYSTEM_NAMESPACE, name: 'mooring-operator' }

/**
 * Starts an operator in a cluster: it stands for election, and runs the controllers while it is leader. A candidate is ready when it knows
 * the leader; the leader is ready when its caches have synced.
 * `ended` rejects when leadership is lost or cannot be taken up: two leaders would be worse than none. `stop` finishes the current steps
 * and releases the lease.
 * @throws MooringError `port_in_use`, `invalid_settings`
 */
export async function startOperator(deps: StartOperatorDeps): Promise<Running> {
  return startWithCleanup((cleanup) => startParts(deps, cleanup))
}

async function startParts({ settings, log, env }: StartOperatorDeps, cleanup: AsyncDisposableStack): Promise<Running> {
  const registry = new Registry()
  cleanup.use(watchEventLoop(registry))
  const fieldManager = 'mooring-operator'
  const store = cleanup.use(createKubernetesStore({ config: await loadClusterConfig(env), fieldManager }))
  // A restarted process of the same pod must not take over its predecessor's lease: that process' last write may still be under way.
  const identity = `${settings.identity}_${crypto.randomUUID()}`
  const election = createLeaderElection({ store, lease: LEASE, identity, log })
  const stopping = new AbortController()
  const isLeader = () => election.isLeader()
  const work = { begun: false, synced: false }
  const isReady = () => (work.begun ? work.synced : election.knowsHolder())
  cleanup.use(await startStatus({ registry, host: settings.listen, port: settings.metricsPort, isReady }))
  const fenced = createFencedStore(store.client, { election, fieldManager })
  const ended = election.run((signal) => {
    work.begun = true
    return lead({ settings, log, store: fenced, registry, isLeader, onSynced: () => (work.synced = true) }, signal)
  }, stopping.signal)
  return {
    ended,
    async stop() {
      stopping.abort()
      await Promise.allSettled([ended])
      await cleanup.disposeAsync()
    },
  }
}

interface LeadDeps {
  readonly settings: ClusterOperatorSettings
  readonly log: Logger
  readonly store: KubernetesStore
  readonly registry: Registry
  readonly isLeader: () => boolean
  /** Called when all objects present at the start are known. */
  readonly onSynced: () => void
}

/** Work of the leader. Resolves when `signal` has aborted and the steps under way are done. */
async function lead({ settings, log, store, registry, isLeader, onSynced }: LeadDeps, signal: AbortSignal): Promise<void> {
  await using cleanup = new AsyncDisposableStack()
  await applyCrds({ client: store.client, log }, signal)
  await restrictSystemNamespace(store)
  const { current: ca } = cleanup.use(await keepCa({ store, log }))
  const { auditPath, digest, webhookSecrets, restoreGrants } = cleanup.use(
    await keepApiSecret({ store, ca, names: apiNames(settings), issuerUrl: settings.issuerUrl, log }),
  )
  cleanup.use(await keepAuditWebhook({ client: store.client, ca: ca.certificate, path: auditPath, log }))
  if (settings.monitoring)
    cleanup.use(await keepPodMonitor({ client: store.client, settings: settings.monitoring.podMonitor, log }))
  const following = createCacheSet({ store, onError: (error) => log.warn({ err: error }, 'a watch was restarted') })
  const caches = createOperatorCaches(following)
  const adminCertificate = createAdminCertificate({ ca: () => ca, user: ADMIN_USER, now: () => new Date() })
  const runtime = createKubernetesRuntime({
    store,
    adminCertificate,
    settings: podSettings(settings),
    region: (id) => regionWithId(caches.regions.list(), id),
    plan: (name) => caches.plans.get({ name }),
    tenants: (server) => caches.instances.byIndex('server', server).map(({ metadata }) => metadata.namespace ?? ''),
    ca: () => ca,
    logger: log,
  })
  cleanup.defer(() => runtime.close())
  const { edges } = settings
  const tunnels =
    edges &&
    openTunnels({
      settings,
      store,
      log,
      registry,
      edges,
      ca,
      adminCertificate,
      digest,
      webhookSecrets,
      following,
      caches,
    })
  if (tunnels) {
    cleanup.defer(() => tunnels.runtime.close())
    cleanup.use(tunnels.journal)
    cleanup.use(tunnels.services)
    cleanup.use(tunnels.issuers.acme)
  }
  const operator = createOperator({
    store,
    caches,
    runtime,
    log,
    registry,
    isLeader,
    tunnels,
    ca: () => ca.certificate,
    // Name of the entry in the credential Secret, and of the file to which API callers are asked to save `tls.ca`.
    caFile: 'ca.crt',
    settings: operatorSettings(settings),
    backups: settings.backups && { repository: openRepository(repositoryUrl(settings.backups)), grants: restoreGrants },
    serviceAccounts: true,
    events: createKubernetesEvents({ client: store.client, instance: settings.identity, registry, log }),
  })
  void following.synced().then(onSynced)
  await Promise.all([following.run(signal), operator.run(signal), tunnels?.journal.run(signal)])
}

const GIB = 1024 ** 3
/** Share of the journal's volume for its database; the rest is for write-ahead log and sorting. */
const JOURNAL_SHARE = 0.7

interface TunnelParts extends Pick<LeadDeps, 'settings' | 'store' | 'log' | 'registry'> {
  readonly edges: EdgePodSettings
  readonly ca: KeyPair
  readonly adminCertificate: () => Promise<KeyPair>
  readonly digest: ValueDigest
  readonly webhookSecrets: WebhookSecrets
  readonly following: CacheSet
  readonly caches: OperatorCaches
}

/** Creates what tunnels need: the edges of all endpoints, the journal and the record of own Services. The caller closes them. */
function openTunnels(parts: TunnelParts) {
  const { settings, store, log, registry, edges, ca, adminCertificate, digest, webhookSecrets, following, caches } = parts
  const ofTunnels = createTunnelCaches(following)
  const { endpoints, tunnels } = ofTunnels
  const runtime = createKubernetesEdges({
    store,
    logger: log,
    settings: { ...edges, journalOutside: settings.journalSecret !== undefined },
    endpoints: () => endpoints.list(),
    ca: () => ca,
    certificates: (endpoint) => certificatesOf(endpoint, tunnels.byIndex('endpoint', endpoint.metadata.name)),
  })
  const journal = createClusterJournal({
    store,
    log,
    registry,
    ca: () => ca.certificate,
    adminCertificate,
    regions: caches.regions,
    servers: caches.servers,
    dial: settings.dial,
    outside: settings.journalSecret,
    maxBytes: settings.serverStorage * JOURNAL_SHARE * GIB,
  })
  const services = createOwnServices({ store, log })
  const addressGuard = createAddressGuard({
    privateAddresses: settings.webhookPrivateAddresses,
    allowedNetworks: settings.webhookAllowedNetworks,
    own: { hasAddress: services.hasAddress, domains: () => endpoints.list().map(({ spec }) => spec.domain) },
  })
  const acme = createAcme({ store, endpoints, registry, now: () => new Date() })
  const issuers = { local: localIssuer(() => ca), acme }
  return { ...ofTunnels, runtime, journal, digest, webhookSecrets, addressGuard, services, issuers }
}

const POD_SECURITY = 'pod-security.kubernetes.io'

/** Makes the API server reject pods in mooring-system that are not restricted. Helm creates the namespace without labels. */
export async function restrictSystemNamespace(store: Store): Promise<void> {
  const labels = Object.fromEntries(['enforce', 'audit', 'warn'].map((mode) => [`${POD_SECURITY}/${mode}`, 'restricted']))
  await store.mergePatch(Namespace, { name: SYSTEM_NAMESPACE }, { metadata: { labels } })
}
