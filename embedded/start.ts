import { join } from 'node:path'
import type { Logger } from 'pino'
import { createApi } from '../apiserver/api.ts'
import { createIssuer, generateIssuerKey, type TokenIssuer } from '../apiserver/auth/issuer.ts'
import { createMetrics } from '../apiserver/metrics.ts'
import type { Motor } from '../crds/motor.ts'
import { issueCertificate, type KeyPair } from '../operator/certificates/local-ca.ts'
import { type Certificates, createCertificates } from '../operator/certificates/renewing.ts'
import type { OperatorCaches } from '../operator/caches.ts'
import { createOperator } from '../operator/operator.ts'
import { createProcessRuntime } from '../operator/server/process/process-runtime.ts'
import { createCacheSet } from '../store/cache-set.ts'
import { isReady } from '../store/conditions.ts'
import { createEmbeddedStore } from '../store/embedded.ts'
import type { Store } from '../store/port.ts'
import { createRoleAccess } from '../store/role-access.ts'
import { createCaches } from './caches.ts'
import { type DataDir, openDataDir } from './data-dir.ts'
import { keepSecret, keptSecret, openInstallation } from './installation.ts'
import { readIssuer, writeIssuer } from './issuer-file.ts'
import { openListeners } from './listeners.ts'
import { startMetrics } from './metrics-listener.ts'
import { outsideIssuers } from './outside-issuers.ts'
import { publish } from './publish.ts'
import { createReadyFile } from './ready-file.ts'
import { serverNames } from './server-names.ts'
import type { Settings } from './settings.ts'
import { welcome } from './welcome.ts'

const CERTIFICATE_SECRET = 'mooring-api-certificate'
const MIB = 1_048_576
const EVERY = { statementsMs: 5_000, sweepMs: 60_000 }

/** A running Mooring. */
export interface Running {
  /** What a person is told. */
  readonly message: string
  /** Stops everything that was started here, within 5 s; data stays. */
  stop(): Promise<void>
}

/**
 * Starts all of Mooring in this process and resolves when the first request can be served.
 * @throws MooringError `locked` (another process has the data directory), `data_dir_unusable`, `port_in_use` and what else prevents a start;
 *   what was started by then is stopped
 */
export async function start(settings: Settings, log: Logger): Promise<Running> {
  const cleanup = new AsyncDisposableStack()
  try {
    return await startParts(settings, log, cleanup)
  } catch (error) {
    await cleanup.disposeAsync()
    throw error
  }
}

/** Each part goes onto `cleanup` as it starts, so that they stop in the opposite order. */
async function startParts(settings: Settings, log: Logger, cleanup: AsyncDisposableStack): Promise<Running> {
  const dir = await openDataDir(settings.dataDir)
  const store = cleanup.use(await createEmbeddedStore({ path: join(dir.path, 'state.db'), logger: log }))
  const readyFile = await createReadyFile(settings.readyFile)
  cleanup.defer(() => readyFile.remove())

  const runtime = createProcessRuntime({
    directory: join(dir.path, 'servers'),
    listen: settings.listen,
    certificate: () => ({ ...certificates.current(), ca: ca.certificate }),
    compatibleMotors: settings.compatibleMotors ? 'nearest' : 'exact',
    logger: log,
  })
  cleanup.defer(() => runtime.close())
  const motors = [...(await runtime.motors()).keys()]
  const { ca, tokenSecret, region } = await openInstallation(store, motors)
  const certificates = cleanup.use(await openCertificates(store, { ca, listen: settings.listen, log }))

  const metrics = createMetrics()
  cleanup.defer(() => metrics.close())
  const following = createCacheSet({ store, onError: (error) => log.warn({ err: error }, 'a watch was restarted') })
  const caches = createCaches(following)
  const operator = createOperator({
    ...{ store, caches, runtime, log, registry: metrics.registry },
    ca: () => ca.certificate,
    settings: operatorSettings(settings),
  })
  const stopping = new AbortController()
  const work = Promise.all([following.run(stopping.signal), operator.run(stopping.signal)])
  cleanup.defer(async () => {
    stopping.abort()
    await work
  })
  await following.synced()

  const listeners = cleanup.use(await openListeners(settings, certificates))
  certificates.onRenew(() => listeners.renewCertificate())
  const { sharedUrl, dedicatedUrl } = listeners
  const metricsUrl = await startMetrics(metrics.registry, settings.metricsPort, cleanup)
  const issuer = await openIssuer(dir, sharedUrl)
  let serving = false
  listeners.serve(
    createApi({
      ...{ store, caches, issuer, tokenSecret, metrics, log },
      access: createRoleAccess(caches),
      issuers: await outsideIssuers(settings.issuer),
      limits: settings,
      isReady: () => serving,
    }),
  )

  await warm(caches, motors, stopping.signal)
  serving = true
  const published = await publish({
    ...{ dir, issuer, readyFile, log },
    client: { sharedUrl, dedicatedUrl, ca: ca.certificate },
    ready: {
      ...{ sharedUrl, dedicatedUrl, ca: dir.ca, metricsUrl, domain: settings.domain },
      ...{ sshHost: null, sshPort: null, httpPort: null, httpsPort: null, dashboardUrl: null },
      ...{ regionId: region.spec.regionId, region: region.spec.id },
    },
  })
  cleanup.use(published)
  const motor = region.spec.motors.find((served) => served.warm)?.id
  return {
    message: welcome({ sharedUrl, dedicatedUrl, dataDir: dir, region: region.spec.id, motor }),
    stop: async () => {
      serving = false
      await cleanup.disposeAsync()
    },
  }
}

function operatorSettings(settings: Settings) {
  return {
    warmPool: settings.warmPool,
    capacity: settings.serverCapacity,
    statementMs: settings.statementLimitSeconds * 1_000,
    sizeBytes: settings.instanceSizeLimitMib * MIB,
    every: EVERY,
  }
}

/** The certificate of the listeners and the database servers: kept in the store, renewed in time. */
async function openCertificates(
  store: Store,
  { ca, listen, log }: { ca: KeyPair; listen: string; log: Logger },
): Promise<Certificates> {
  const names = serverNames(listen)
  const kept = await keptSecret(store, CERTIFICATE_SECRET, async () => ({
    ...(await issueCertificate({ ca, names, now: new Date() })),
  }))
  const certificates = await createCertificates({
    ...{ ca, names, stored: { certificate: kept.certificate ?? '', key: kept.key ?? '' } },
    onError: (error) => log.error({ err: error }, 'the certificate could not be renewed'),
  })
  const keep = () => keepSecret(store, CERTIFICATE_SECRET, { ...certificates.current() })
  certificates.onRenew(() => {
    keep().catch((error: unknown) => log.error({ err: error }, 'the renewed certificate was not kept'))
  })
  await keep()
  return certificates
}

/** The issuer keeps its first name and key for good: tokens outlive a restart on other ports. */
async function openIssuer(dir: DataDir, url: string): Promise<TokenIssuer> {
  const known = await readIssuer(dir)
  if (known) return createIssuer(known)
  const fresh = { issuer: url, privateKey: await generateIssuerKey() }
  await writeIssuer(dir, fresh)
  return createIssuer(fresh)
}

/** Waits for the servers that are to be there before the first request. */
async function warm({ servers }: OperatorCaches, motors: readonly Motor[], signal: AbortSignal): Promise<void> {
  if (motors.length === 0) return
  await new Promise<void>((resolve) => {
    const look = () => {
      if (!signal.aborted && !servers.list().some(isReady)) return
      stop()
      resolve()
    }
    const stop = servers.onChange(look)
    signal.addEventListener('abort', look, { once: true })
    look()
  })
}
