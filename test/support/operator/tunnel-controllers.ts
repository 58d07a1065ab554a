import { pino } from 'pino'
import { Namespace, Secret } from '../../../crds/core.ts'
import { TenantNamespace } from '../../../crds/tenant-namespace.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { Region } from '../../../crds/region.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../../../crds/tunnel-password.ts'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { databaseIndexes } from '../../../operator/dedicated-database/indexes.ts'
import { createCacheSet } from '../../../store/cache.ts'
import { conditionOf } from '../../../store/conditions.ts'
import { openTemporaryStore } from '../store/temporary-store.ts'
import type { Store } from '../../../store/port.ts'
import { REGION_ID } from '../../builders/resources.ts'
import { createVirtualClock } from '../clocks.ts'
import type { Acme, AcmeDeps } from '../../../operator/acme/acme.ts'
import { createCa } from '../../../operator/certificates/local-ca.ts'
import type { EdgeRuntime } from '../../../operator/endpoint/runtime.ts'
import { reportFailures, reporterOf } from '../../../operator/events/failures.ts'
import type { Failure } from '../../../operator/events/events.ts'
import { createTenancy } from '../../../operator/namespace/tenancy.ts'
import { createReporter } from '../../../operator/reporter.ts'
import { createController } from '../../../operator/runtime/controller.ts'
import { type CertificateIssuer, localIssuer } from '../../../operator/tunnel/certificate-issuer.ts'
import { createCertificateSweep } from '../../../operator/tunnel/certificate-sweep.ts'
import { createTunnelControllers } from '../../../operator/tunnel/controllers.ts'
import { passwordIndexes, tunnelIndexes } from '../../../operator/tunnel/indexes.ts'

export const NAMESPACE = 'acme--prod'
export const HOUR = 3_600_000
export const DAY = 24 * HOUR
export const ca = await createCa(new Date())
export const inNamespace = (name: string) => ({ namespace: NAMESPACE, name })
export const web = inNamespace('web')

interface Options {
  /** Creates the orders at public CAs; default: none can be made. */
  readonly acme?: (deps: Omit<AcmeDeps, 'registry'>) => Acme
  readonly issuer?: (real: CertificateIssuer) => CertificateIssuer
  /** Replaces the runtime of one healthy edge. */
  readonly ensure?: EdgeRuntime['ensure']
  /** Maximum number of tunnels in the namespace. */
  readonly max?: number
  /** Labels of the Namespace, without which it is not a tenant's. Default: they do not matter. */
  readonly labels?: Readonly<Record<string, string>>
}

/** Starts the controllers of tunnels over a real store, with a clock that a test advances. */
export async function startTunnels(options: Options = {}) {
  const { issuer = (real: CertificateIssuer) => real, ensure = async () => ({ ready: 1 }) } = options
  const { store, ...temporary } = await openTemporaryStore()
  const clock = createVirtualClock()
  const began = Date.now()
  const now = () => new Date(began + clock.now())
  const set = createCacheSet({ store, onError: () => undefined })
  const [regions, endpoints] = [set.cached(Region), set.cached(TunnelEndpoint)]
  const tunnels = set.cached(Tunnel, tunnelIndexes)
  const tunnelPasswords = set.cached(TunnelPassword, passwordIndexes)
  const databases = set.cached(DedicatedDatabase, databaseIndexes)
  const [namespaces, tenantNamespaces] = [set.cached(Namespace), set.cached(TenantNamespace)]
  const tenancy = options.labels && createTenancy({ store, namespaces, tenantNamespaces })
  const told: Failure[] = []
  const events = { failure: (failure: Failure) => void told.push(failure) }
  const report = createReporter({ store, now })
  const own = localIssuer(() => ca, now)
  const issuers = { local: { ...own, ...issuer(own) }, acme: options.acme?.({ store, endpoints, now }) }
  let reads = 0
  const read: Store['get'] = (kind, key) => {
    if (kind.kind === Secret.kind && key.name.endsWith('-certificate')) reads += 1
    return store.get(kind, key)
  }
  const controllers = createTunnelControllers({
    store: { ...store, get: read },
    ...{ regions, endpoints, tunnels, tunnelPasswords, databases, tenancy, now, report, issuers },
    max: options.max ?? 50,
    runtime: { ensure, onChange: () => () => undefined },
    failureReporter: (cache) => reporterOf(events, cache),
    controller: (about) => createController({ ...about, clock, log: pino({ level: 'silent' }), onResult: () => undefined }),
  })
  const stop = new AbortController()
  await store.create(Namespace, { metadata: { name: NAMESPACE, labels: options.labels ?? {} } })
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  let looks = 0
  const sweep = createCertificateSweep({
    ...{ tunnels, endpoints, issuers, report, now, clock },
    store: {
      get(kind, key) {
        looks += 1
        return store.get(kind, key)
      },
    },
    onError: (error) => {
      throw error
    },
  })
  const work = [set, ...controllers].map((each) => each.run(stop.signal))
  await set.synced()
  const reporting = [tunnels, endpoints].map((cache) => reportFailures(cache, events, clock))

  const until = (name: string, desired: (tunnel: Tunnel) => boolean): Promise<Tunnel> =>
    tunnels.waitFor(inNamespace(name), (found) => (found && desired(found) ? found : undefined), stop.signal)
  return {
    ...{ store, now, until, advance: (ms: number) => clock.advance(ms) },
    /**
     * Starts the periodic check of certificates' Secrets. Returns a function that stops it, and resolves after a running check.
     * Advancing the clock by days is slow while it runs.
     */
    sweep() {
      const over = new AbortController()
      const swept = sweep.run(AbortSignal.any([stop.signal, over.signal]))
      work.push(swept)
      return () => {
        over.abort()
        return swept
      }
    },
    /** Number of certificates' Secrets that reconciles have read. */
    reads: () => reads,
    /** Number of Secrets that the sweep has read. */
    looks: () => looks,
    /** Events of failures, in order: kind, reason and note. */
    told: () => told.map(({ kind, reason, note }) => `${kind.kind} ${reason}: ${note}`),
    reason: (reason: string, name = 'web') => until(name, (tunnel) => conditionOf(tunnel, 'Ready')?.reason === reason),
    /** Waits until the status of the endpoint counts this many tunnels. */
    counted: (name: string, count: number) =>
      endpoints.waitFor({ name }, (found) => (found?.status?.tunnels === count ? found : undefined), stop.signal),
    gone: () => tunnels.waitFor(web, (found) => (found ? undefined : { gone: true }), stop.signal),
    makeTunnel: (name = 'web') => store.create(Tunnel, { metadata: inNamespace(name), spec: { regionId: 1 } }),
    async makeEndpoint(name: string, spec: object = {}) {
      const whole = { region: REGION_ID, domain: `${name}.test`, sshHost: 'ssh.test', ...spec }
      await store.create(TunnelEndpoint, { metadata: { name }, spec: whole })
    },
    makeRegion: () =>
      store.create(Region, { metadata: { name: 'r' }, spec: { id: REGION_ID, regionId: 1, name: 'Here', motors: [] } }),
    secretOf: (hostname = '') => store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: `tunnel-${hostname}-certificate` }),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await Promise.all(work)
      for (const each of reporting) each()
      await temporary[Symbol.asyncDispose]()
    },
  }
}

export const hostnameOf = ({ status }: Tunnel): string => status?.hostname ?? ''
export const obtainedAt = ({ status }: Tunnel): number => Date.parse(status?.certificate?.obtainedAt ?? '')
export const endOf = (status: Tunnel['status']): number => Date.parse(status?.certificate?.expiresAt ?? '')
