import { isIPv6 } from 'node:net'
import { join, resolve } from 'node:path'
import type { Logger } from 'pino'
import { createApi } from '../apiserver/api.ts'
import { createIssuer, type TokenIssuer } from '../apiserver/auth/issuer.ts'
import { createSignInLinks } from '../apiserver/dashboard/sign-in-links.ts'
import { createOutsideIssuers } from '../apiserver/auth/trusted-issuers.ts'
import { createMetrics } from '../apiserver/http/access-log.ts'
import { issueCertificate, type KeyAlgorithm, type KeyPair } from '../operator/certificates/local-ca.ts'
import { type Certificates, createCertificates, unknownHostNames } from '../operator/certificates/renewing-certificate.ts'
import { createValueDigest } from '../journal/audit-entry.ts'
import { generateIssuerKey } from '../operator/installation/api-secret.ts'
import { keepSecret, keptSecret } from '../operator/installation/kept-secret.ts'
import { createAcme } from '../operator/acme/acme.ts'
import { createOperator } from '../operator/operator.ts'
import { callersHost } from '../operator/server/process/address.ts'
import { chooseConfinement } from '../operator/server/process/confinement/confinement.ts'
import { createDockerRuntime } from '../operator/server/docker/docker-runtime.ts'
import { createProcessRuntime } from '../operator/server/process/process-runtime.ts'
import { killServers } from '../operator/server/process/spawn/serving.ts'
import { operatorSettings } from '../operator/settings.ts'
import { type ProcessLifetime, startWithCleanup } from '../process/process-lifetime.ts'
import type { Running } from '../process/run.ts'
import { createAddressGuard, portOf } from '../shared/outside-addresses.ts'
import { createRestoreGrants } from '../shared/restore-grants.ts'
import { createWebhookSecrets } from '../shared/webhook-secrets.ts'
import { startStatus } from '../process/status-listener.ts'
import { createCacheSet } from '../store/cache.ts'
import { createEmbeddedStore, type EmbeddedStore } from '../store/embedded.ts'
import type { Store } from '../store/port.ts'
import { createRoleAccess } from '../store/access.ts'
import { openSqliteJournal } from '../journal/sqlite.ts'
import { localIssuer } from '../operator/tunnel/certificate-issuer.ts'
import { createCaches, createTunnelCaches } from './caches.ts'
import { createEdges } from './edges.ts'
import { type DataDir, openDataDir, readIssuer, writeIssuer } from './data-dir.ts'
import { openInstallation, homeReconciled, warm } from './installation.ts'
import { openListeners, serverNames } from './listeners.ts'
import { createOwnListeners } from './own-listeners.ts'
import { openBackups } from './backups.ts'
import { checkWarm, createMotorAdvice, openGivenEngines } from './motors.ts'
import { publish, createReadyFile, signAdminToken } from './publish.ts'
import { joinRuntimes } from './runtimes.ts'
import type { Settings } from './settings.ts'
import { openTunnelIssuer } from './tls-files.ts'
import { welcome } from './welcome.ts'

const LOOPBACK = '127.0.0.1'
const CERTIFICATE_SECRET = 'mooring-api-certificate'
/** Certificate of servers that need an RSA key; issued when the first of them starts. */
const RSA_SECRET = 'mooring-rsa-certificate'
const UNKNOWN_HOSTS_SECRET = 'mooring-strangers-certificate'

/**
 * Starts Mooring in this process, and resolves when the first request can be served. After an error it stops the parts that are
 * started.
 * @throws MooringError `locked` (another process has the data directory), `data_dir_unusable`, `port_in_use` and others; the
 * reason of `life.stopping` when that aborts
 */
export async function start(settings: Settings, log: Logger, life: ProcessLifetime): Promise<Running> {
  return startWithCleanup((cleanup) => startParts({ settings, log, life }, cleanup))
}

interface StartDeps {
  readonly settings: Settings
  readonly log: Logger
  readonly life: ProcessLifetime
}

/** Starts the parts. Each goes onto `cleanup`, so that they stop in the opposite order. */
async function startParts({ settings, log, life }: StartDeps, cleanup: AsyncDisposableStack): Promise<Running> {
  const compatibleMotors = settings.compatibleMotors ? 'nearest' : 'exact'
  const { own: ownEngines, docker: dockerEngines } = await openGivenEngines(settings, { logger: log, signal: life.stopping })
  const enginesCache = settings.enginesCache === undefined ? undefined : resolve(settings.enginesCache)
  const dir = await openDataDir(settings.dataDir)
  const store = cleanup.use(await createEmbeddedStore({ path: join(dir.path, 'state.db'), logger: log }))
  const servers = join(dir.path, 'servers')
  const lost = storeLoss(store)
  const stopping = AbortSignal.any([life.stopping, lost])
  const readyFile = await createReadyFile(settings.readyFile)

  const publicHost = settings.publicHost ?? callersHost(settings.listen)
  const confinement = await chooseConfinement({ directory: servers, logger: log })
  const ofServers = {
    directory: servers,
    certificate: async (key: KeyAlgorithm) => ({
      ...(await (key === 'rsa' ? rsaCertificates() : certificates)).current(),
      ca: ca.certificate,
    }),
    logger: log,
  }
  const docker = createDockerRuntime({ ...ofServers, engines: dockerEngines, userOf: confinement.userOf })
  const repository = await openBackups(settings, dir.path)
  const processes = createProcessRuntime({
    ...ofServers,
    confinement,
    listen: settings.listen,
    publicHost,
    compatibleMotors,
    enginesCache,
    ownEngines,
    backups: { repository },
  })
  // Only after the state is locked: the servers might belong to another process.
  life.onForcedEnd(() => Promise.all([killServers(servers), docker.kill()]))
  const runtime = joinRuntimes(processes, docker)
  cleanup.defer(() => runtime.close())
  const motors = [...(await runtime.motors()).keys()]
  if (motors.some((motor) => !dockerEngines.has(motor))) {
    log.warn('plans size database servers here but do not limit their memory and CPU; see "Sizes" in docs/dedicated.md')
  }
  const motorAdvice = await createMotorAdvice(compatibleMotors, {
    cache: enginesCache,
    own: ownEngines,
    listen: settings.listen,
  })
  checkWarm(settings.warm, { served: motors, advice: motorAdvice })
  stopping.throwIfAborted()
  const { ca, tokenSecret, region } = await openInstallation(store, { served: motors, warm: settings.warm })
  const certify = async (secret: string, names: readonly string[], key?: KeyAlgorithm) =>
    cleanup.use(await openCertificates(store, { secret, ca, names, key, log }))
  const certificates = await certify(CERTIFICATE_SECRET, serverNames(settings.listen, publicHost))
  const rsaCertificates = once(() => certify(RSA_SECRET, serverNames(settings.listen, publicHost), 'rsa'))
  const unknownHosts = await certify(UNKNOWN_HOSTS_SECRET, unknownHostNames(settings.domain))

  let serving = false
  const isReady = () => serving && !lost.aborted
  const metrics = createMetrics()
  cleanup.defer(() => metrics.close())
  const following = createCacheSet({ store, onError: (error) => log.warn({ err: error }, 'a watch was restarted') })
  const caches = createCaches(following)
  const tunnelCaches = createTunnelCaches(following)
  const journal = cleanup.use(await openSqliteJournal({ path: join(dir.path, 'journal.db'), log, registry: metrics.registry }))
  const acme = cleanup.use(
    createAcme({ store, endpoints: tunnelCaches.endpoints, registry: metrics.registry, now: () => new Date() }),
  )
  const edges = createEdges({
    ...tunnelCaches,
    ...(await openTunnelIssuer({ store, settings, log }, cleanup)),
    databases: caches.databases,
    store,
    settings,
    publicHost,
    journal,
    log,
    unknownHosts,
    region: region.spec.id,
    registry: metrics.registry,
  })
  const own = createOwnListeners({ endpoints: tunnelCaches.endpoints, servers: caches.servers, publicHost })
  const addressGuard = createAddressGuard({ privateAddresses: settings.webhookPrivateAddresses, own })
  const operator = createOperator({
    store,
    caches,
    runtime,
    log,
    registry: metrics.registry,
    ca: () => ca.certificate,
    caFile: dir.ca,
    serviceAccounts: false,
    settings: operatorSettings(settings),
    backups: { repository, grants: createRestoreGrants(tokenSecret) },
    tunnels: {
      ...tunnelCaches,
      journal,
      runtime: edges.runtime,
      digest: createValueDigest(tokenSecret),
      issuers: { local: localIssuer(() => ca), acme },
      webhookSecrets: createWebhookSecrets(tokenSecret),
      addressGuard,
    },
  })
  const ending = new AbortController()
  const work = Promise.all([following.run(ending.signal), operator.run(ending.signal)])
  cleanup.defer(async () => {
    ending.abort()
    await work
  })
  await following.synced()
  stopping.throwIfAborted()

  const listeners = cleanup.use(await openListeners(settings, certificates))
  certificates.onRenew(() => listeners.renewCertificate())
  const { sharedUrl, dedicatedUrl, sharedHttpUrl, dedicatedHttpUrl } = listeners
  const edge = cleanup.use(await edges.start(dir.knownHosts))
  const { metricsUrl } = cleanup.use(
    await startStatus({ registry: metrics.registry, host: LOOPBACK, port: settings.metricsPort, isReady }),
  )
  const { ssh, http, https } = edge.ports
  const urls = [sharedUrl, dedicatedUrl, sharedHttpUrl, dedicatedHttpUrl, metricsUrl].filter((url) => url !== null)
  own.add(ssh, http, https, ...urls.map((url) => portOf(new URL(url))))
  const issuer = await openIssuer(dir, sharedUrl)
  const links = createSignInLinks()
  listeners.serve(
    createApi({
      store,
      caches,
      issuer,
      tokenSecret,
      metrics,
      log,
      motorAdvice,
      backups: true,
      withoutBackups: new Set(dockerEngines.keys()),
      tunnels: { ...tunnelCaches, journal, addressGuard },
      access: createRoleAccess(caches),
      issuers: createOutsideIssuers({ issuers: settings.issuer, log }),
      limits: settings,
      redeemCode: async (code) => (links.redeem(code) ? signAdminToken(issuer) : undefined),
      isReady,
    }),
  )

  if (motors.some((motor) => settings.warm.includes(motor)) && !(await warm({ ...caches, ...operator }, stopping))) {
    log.warn('no database server is up yet; the API is ready, and new databases wait for a server')
  }
  await homeReconciled(caches, stopping)
  serving = true
  const published = cleanup.use(
    await publish({
      dir,
      issuer,
      readyFile,
      log,
      dashboardUrl: () => links.issue(listeners.dashboardOrigin),
      // A database server without confinement could read the token.
      isTokenKept: confinement.kind !== 'none',
      client: { sharedUrl, dedicatedUrl, ca: ca.certificate },
      ready: {
        sharedUrl,
        dedicatedUrl,
        sharedHttpUrl,
        dedicatedHttpUrl,
        metricsUrl,
        ca: dir.ca,
        domain: settings.domain,
        sshHost: publicHost,
        sshPort: edge.ports.ssh,
        httpPort: edge.ports.http,
        httpsPort: edge.ports.https,
        regionId: region.spec.regionId,
        region: region.spec.id,
      },
    }),
  )
  const motor = region.spec.motors.find((served) => served.warm)?.id
  return {
    message: welcome({
      sharedUrl,
      dedicatedUrl,
      publicUrls: settings.publicHost === undefined ? [] : [sharedUrl, dedicatedUrl].map((url) => withHost(url, publicHost)),
      httpUrls: [sharedHttpUrl, dedicatedHttpUrl].filter((url) => url !== null),
      dataDir: dir,
      token: published.token,
      dashboardUrl: published.dashboardUrl,
      region: region.spec.id,
      edge: { sshHost: publicHost, ports: edge.ports, domain: settings.domain },
      motor,
    }),
    ended: rejectedBy(lost),
    stop: async () => {
      serving = false
      await cleanup.disposeAsync()
    },
  }
}

function withHost(url: string, host: string): string {
  const { protocol, port } = new URL(url)
  return `${protocol}//${isIPv6(host) ? `[${host}]` : host}:${port}`
}

/** Returns a signal that aborts when the store cannot write any more. Mooring cannot work then; a restart solves it. */
function storeLoss(store: EmbeddedStore): AbortSignal {
  const loss = new AbortController()
  void store.ended.then((reason) => reason && loss.abort(reason))
  return loss.signal
}

/** Function that runs `make` at its first call, and returns that result at each. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => (made ??= make())
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const end = () => reject(signal.reason as Error)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end)
  })
}

interface CertificateSpec {
  /** Name of the Secret that holds the certificate. */
  readonly secret: string
  readonly ca: KeyPair
  readonly names: readonly string[]
  readonly key?: KeyAlgorithm | undefined
  readonly log: Logger
}

/** Opens a certificate of this process, which is kept in the store and renewed in time. */
async function openCertificates(store: Store, { secret, ca, names, key, log }: CertificateSpec): Promise<Certificates> {
  const kept = await keptSecret(store, secret, async () => ({
    ...(await issueCertificate({ ca, names, key, now: new Date() })),
  }))
  const certificates = await createCertificates({
    ca,
    names,
    key,
    stored: { certificate: kept.certificate ?? '', key: kept.key ?? '' },
    onError: (error) => log.error({ err: error }, 'certificate was not renewed'),
  })
  const keep = () => keepSecret(store, secret, { ...certificates.current() })
  certificates.onRenew(() => {
    keep().catch((error: unknown) => log.error({ err: error }, 'renewed certificate was not stored'))
  })
  await keep()
  return certificates
}

/** Opens the token issuer. It keeps its first name and key: tokens stay valid after a restart on other ports. */
async function openIssuer(dir: DataDir, url: string): Promise<TokenIssuer> {
  const known = await readIssuer(dir)
  if (known) return createIssuer(known)
  const fresh = { issuer: url, privateKey: await generateIssuerKey() }
  await writeIssuer(dir, fresh)
  return createIssuer(fresh)
}
