import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { createIssuer, generateIssuerKey, type TokenIssuer } from '../apiserver/auth/issuer.ts'
import { createMetrics } from '../apiserver/metrics.ts'
import { type ListenerConfig, type Port, startServers } from '../apiserver/servers.ts'
import type { Motor } from '../crds/motor.ts'
import { createOperator } from '../operator/main.ts'
import { createProcessRuntime } from '../operator/server/process/process-runtime.ts'
import { isReady } from '../store/conditions.ts'
import { createEmbeddedStore } from '../store/embedded.ts'
import { createApi } from './api.ts'
import { type Caches, createCaches } from './caches.ts'
import { createCertificates, serverNames } from './certificates.ts'
import { writeClientFiles } from './client-files.ts'
import { type DataDir, openDataDir } from './data-dir.ts'
import { keepSecret, keptSecret, openInstallation } from './installation.ts'
import { readIssuer, writeIssuer } from './issuer-file.ts'
import { issueCertificate } from './local-ca.ts'
import { startMetrics } from './metrics-listener.ts'
import { outsideIssuers } from './outside-issuers.ts'
import { createReadyFile } from './ready-file.ts'
import type { Settings } from './settings.ts'
import { welcome } from './welcome.ts'

const CERTIFICATE_SECRET = 'mooring-api-certificate'
const ADMIN_TOKEN_HOURS = 12
const RENEW_TOKEN_MS = 6 * 3_600_000
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

async function startParts(settings: Settings, log: Logger, cleanup: AsyncDisposableStack): Promise<Running> {
  const dir = await openDataDir(settings.dataDir)
  const store = cleanup.use(await createEmbeddedStore({ path: join(dir.path, 'state.db'), logger: log }))
  const readyFile = await createReadyFile(settings.readyFile)
  cleanup.defer(() => readyFile.remove())
  const compatibleMotors = settings.compatibleMotors ? 'nearest' : 'exact'
  const names = serverNames(settings.listen)

  let engineCertificate = (): { key: string; certificate: string; ca: string } => {
    throw new Error('the certificate is not there yet')
  }
  const runtime = createProcessRuntime({
    directory: join(dir.path, 'servers'),
    listen: settings.listen,
    certificate: () => engineCertificate(),
    compatibleMotors,
    logger: log,
  })
  cleanup.defer(() => runtime.close())
  const motors = [...(await runtime.motors()).keys()]
  const { ca, tokenSecret, region } = await openInstallation(store, motors)

  const stored = await keptSecret(store, CERTIFICATE_SECRET, async () => ({
    ...(await issueCertificate({ ca, names, now: new Date() })),
  }))
  const certificates = cleanup.use(
    await createCertificates({
      ...{ ca, names, stored: { certificate: stored.certificate ?? '', key: stored.key ?? '' } },
      onError: (error) => log.error({ err: error }, 'the certificate could not be renewed'),
    }),
  )
  await keepSecret(store, CERTIFICATE_SECRET, { ...certificates.current() })
  engineCertificate = () => ({ ...certificates.current(), ca: ca.certificate })

  const metrics = createMetrics()
  cleanup.defer(() => metrics.close())
  const stopping = new AbortController()
  const { caches, ...following } = createCaches(store, (error) => log.warn({ err: error }, 'a watch was restarted'))
  const operator = createOperator({
    ...{ store, caches, runtime, log, registry: metrics.registry },
    ca: () => ca.certificate,
    settings: operatorSettings(settings),
  })
  const work = Promise.all([following.run(stopping.signal), operator.run(stopping.signal)])
  cleanup.defer(async () => {
    stopping.abort()
    await work
  })
  await following.synced()

  // The listeners come before the API: the issuer is named after the port they got.
  const apps: Record<'shared' | 'dedicated', RequestListener> = { shared: notYet, dedicated: notYet }
  const servers = await startServers({
    host: settings.listen,
    certificate: () => certificates.current(),
    listeners: {
      shared: listenerConfig((req, res) => apps.shared(req, res), settings, 'shared'),
      dedicated: listenerConfig((req, res) => apps.dedicated(req, res), settings, 'dedicated'),
    },
  })
  cleanup.defer(() => servers.close())
  certificates.onRenew(() => {
    servers.renewCertificate()
    keepSecret(store, CERTIFICATE_SECRET, { ...certificates.current() }).catch((error: unknown) =>
      log.error({ err: error }, 'the renewed certificate was not kept'),
    )
  })
  const metricsUrl = await startMetrics(metrics.registry, settings.metricsPort, cleanup)
  const sharedUrl = urlOf(settings.listen, servers.addresses.shared.https.port)
  const dedicatedUrl = urlOf(settings.listen, servers.addresses.dedicated.https.port)
  const issuer = await openIssuer(dir, sharedUrl)

  let ready = false
  const issuers = await outsideIssuers(settings.issuer)
  Object.assign(
    apps,
    createApi({ ...{ store, caches, issuer, issuers, tokenSecret, settings, metrics, log }, isReady: () => ready }),
  )

  async function publish(): Promise<void> {
    const token = await issuer.sign({
      subject: 'admin',
      namespace: 'default/default',
      role: 'platform-admin',
      ttlSeconds: ADMIN_TOKEN_HOURS * 3_600,
    })
    await writeClientFiles(dir, { sharedUrl, dedicatedUrl, token, ca: ca.certificate })
    await readyFile.write({
      ...{ sharedUrl, dedicatedUrl, token, ca: dir.ca, metricsUrl, domain: settings.domain },
      ...{ sshHost: null, sshPort: null, httpPort: null, httpsPort: null, dashboardUrl: null },
      regionId: region.spec.regionId,
      region: region.spec.id,
    })
  }
  await warm(caches, motors, stopping.signal)
  ready = true
  await publish()
  const renewal = setInterval(() => {
    publish().catch((error: unknown) => log.error({ err: error }, 'the token was not renewed'))
  }, RENEW_TOKEN_MS).unref()
  cleanup.defer(() => clearInterval(renewal))
  const motor = region.spec.motors.find((served) => served.warm)?.id
  return {
    message: welcome({ sharedUrl, dedicatedUrl, dataDir: dir, region: region.spec.id, motor }),
    stop: async () => {
      ready = false
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

const notYet: RequestListener = (_req, res) => {
  res
    .writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': '1' })
    .end('{"msg":"starting","error":{"code":"unavailable","details":[]}}')
}

function listenerConfig(app: RequestListener, settings: Settings, listener: 'shared' | 'dedicated'): ListenerConfig {
  const port = (value: number | 'auto', flag: string): Port => ({ port: value === 'auto' ? 0 : value, flag })
  const http = settings[`${listener}HttpPort`]
  return {
    app,
    https: port(settings[`${listener}Port`], `--${listener}-port`),
    http: http === 'off' ? undefined : port(http, `--${listener}-http-port`),
  }
}

/** The address a caller on this machine uses. */
function urlOf(listen: string, port: number): string {
  const host = listen === '0.0.0.0' ? '127.0.0.1' : listen === '::' ? '[::1]' : listen.includes(':') ? `[${listen}]` : listen
  return `https://${host}:${port}`
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
async function warm(caches: Caches, motors: readonly Motor[], signal: AbortSignal): Promise<void> {
  if (motors.length === 0) return
  await new Promise<void>((resolve) => {
    const look = () => {
      if (!signal.aborted && !caches.servers.list().some(isReady)) return
      stop()
      resolve()
    }
    const stop = caches.servers.onChange(look)
    signal.addEventListener('abort', look, { once: true })
    look()
  })
}
