import { join } from 'node:path'
import type { Logger } from 'pino'
import { createApi } from '../apiserver/api.ts'
import { createIssuer, type TokenIssuer } from '../apiserver/auth/issuer.ts'
import { createOutsideIssuers } from '../apiserver/auth/outside-issuers.ts'
import { createMetrics } from '../apiserver/metrics.ts'
import type { Motor } from '../crds/motor.ts'
import type { TenantNamespace } from '../crds/tenant-namespace.ts'
import { issueCertificate, type KeyPair } from '../operator/certificates/local-ca.ts'
import { type Certificates, createCertificates } from '../operator/certificates/renewing.ts'
import type { OperatorCaches } from '../operator/caches.ts'
import { generateIssuerKey } from '../operator/installation/issuer-key.ts'
import { keepSecret, keptSecret } from '../operator/installation/kept-secret.ts'
import { createOperator, type Operator } from '../operator/operator.ts'
import { createProcessRuntime } from '../operator/server/process/process-runtime.ts'
import { operatorSettings } from '../operator/settings.ts'
import type { Running } from '../process/run.ts'
import { startStatus } from '../process/status-listener.ts'
import { createCacheSet } from '../store/cache-set.ts'
import { conditionOf, isReady } from '../store/conditions.ts'
import { createEmbeddedStore } from '../store/embedded.ts'
import type { Store } from '../store/port.ts'
import { createRoleAccess } from '../store/role-access.ts'
import { createCaches } from './caches.ts'
import { type DataDir, openDataDir } from './data-dir.ts'
import { HOME, openInstallation } from './installation.ts'
import { readIssuer, writeIssuer } from './issuer-file.ts'
import { openListeners } from './listeners.ts'
import { publish } from './publish.ts'
import { createReadyFile } from './ready-file.ts'
import { serverNames } from './server-names.ts'
import type { Settings } from './settings.ts'
import { welcome } from './welcome.ts'

const LOOPBACK = '127.0.0.1'
const CERTIFICATE_SECRET = 'mooring-api-certificate'

/**
 * Starts all of Mooring in this process and resolves when the first request can be served.
 * @throws MooringError `locked` (another process has the data directory), `data_dir_unusable`, `port_in_use` and what else prevents a start;
 *   what was started by then is stopped; the reason of `stopping` when that aborts
 */
export async function start(settings: Settings, log: Logger, stopping: AbortSignal): Promise<Running> {
  const cleanup = new AsyncDisposableStack()
  try {
    return await startParts({ settings, log, stopping }, cleanup)
  } catch (error) {
    await cleanup.disposeAsync()
    throw error
  }
}

interface StartDeps {
  readonly settings: Settings
  readonly log: Logger
  readonly stopping: AbortSignal
}

/** Each part goes onto `cleanup` as it starts, so that they stop in the opposite order. */
async function startParts({ settings, log, stopping }: StartDeps, cleanup: AsyncDisposableStack): Promise<Running> {
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

  let serving = false
  const metrics = createMetrics()
  cleanup.defer(() => metrics.close())
  const following = createCacheSet({ store, onError: (error) => log.warn({ err: error }, 'a watch was restarted') })
  const caches = createCaches(following)
  const operator = createOperator({
    ...{ store, caches, runtime, log, registry: metrics.registry },
    ca: () => ca.certificate,
    serviceAccounts: false,
    settings: operatorSettings(settings),
  })
  const ending = new AbortController()
  const work = Promise.all([following.run(ending.signal), operator.run(ending.signal)])
  cleanup.defer(async () => {
    ending.abort()
    await work
  })
  await following.synced()

  const listeners = cleanup.use(await openListeners(settings, certificates))
  certificates.onRenew(() => listeners.renewCertificate())
  const { sharedUrl, dedicatedUrl } = listeners
  const { metricsUrl } = cleanup.use(
    await startStatus({ registry: metrics.registry, host: LOOPBACK, port: settings.metricsPort, isReady: () => serving }),
  )
  const issuer = await openIssuer(dir, sharedUrl)
  listeners.serve(
    createApi({
      ...{ store, caches, issuer, tokenSecret, metrics, log },
      access: createRoleAccess(caches),
      issuers: createOutsideIssuers({ issuers: settings.issuer, log }),
      limits: settings,
      isReady: () => serving,
    }),
  )

  await warm({ ...caches, ...operator }, motors, stopping)
  await homeJudged(caches, stopping)
  serving = true
  const published = cleanup.use(
    await publish({
      ...{ dir, issuer, readyFile, log },
      client: { sharedUrl, dedicatedUrl, ca: ca.certificate },
      ready: {
        ...{ sharedUrl, dedicatedUrl, ca: dir.ca, metricsUrl, domain: settings.domain },
        ...{ sshHost: null, sshPort: null, httpPort: null, httpsPort: null, dashboardUrl: null },
        ...{ regionId: region.spec.regionId, region: region.spec.id },
      },
    }),
  )
  const motor = region.spec.motors.find((served) => served.warm)?.id
  return {
    message: welcome({ sharedUrl, dedicatedUrl, dataDir: dir, token: published.token, region: region.spec.id, motor }),
    stop: async () => {
      serving = false
      await cleanup.disposeAsync()
    },
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

/** Waits for the servers that are to be there before the first request. @throws the signal's reason when it aborts */
async function warm(
  { servers, firstServer }: Pick<OperatorCaches, 'servers'> & Pick<Operator, 'firstServer'>,
  motors: readonly Motor[],
  signal: AbortSignal,
): Promise<void> {
  if (motors.length === 0) return
  await new Promise<void>((resolve) => {
    let up = false
    const look = () => {
      // What a status says may be from before the last stop.
      if (!signal.aborted && !(up && servers.list().some(isReady))) return
      stop()
      resolve()
    }
    const stop = servers.onChange(look)
    signal.addEventListener('abort', look, { once: true })
    void firstServer.then(() => {
      up = true
      look()
    })
    look()
  })
  signal.throwIfAborted()
}

/** Waits until the operator has looked at the home namespace. Ready is not waited for: one that is being deleted never will be. */
async function homeJudged({ tenantNamespaces }: OperatorCaches, signal: AbortSignal): Promise<void> {
  const look = (home: TenantNamespace | undefined) =>
    home?.metadata.deletionTimestamp !== undefined ? true : home && conditionOf(home, 'Ready') && true
  await tenantNamespaces.waitFor({ name: HOME }, look, signal)
}
