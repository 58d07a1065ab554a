import { pino } from 'pino'
import { Namespace, Secret } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { Region } from '../../crds/region.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../../crds/tunnel-password.ts'
import { createCacheSet } from '../../store/cache-set.ts'
import { conditionOf } from '../../store/conditions.ts'
import { openTemporaryStore } from '../../store/embedded/open-temporary.ts'
import { REGION_ID } from '../builders/shared-instance.ts'
import { createVirtualClock } from './virtual-clock.ts'
import { createCa } from '../../operator/certificates/local-ca.ts'
import { createReporter } from '../../operator/reporter.ts'
import { createController } from '../../operator/runtime/controller.ts'
import { type CertificateIssuer, localIssuer } from '../../operator/tunnel/certificate-issuer.ts'
import { createTunnelControllers } from '../../operator/tunnel/controllers.ts'
import { passwordIndexes, tunnelIndexes } from '../../operator/tunnel/indexes.ts'

export const NAMESPACE = 'acme--prod'
export const HOUR = 3_600_000
export const DAY = 24 * HOUR
export const ca = await createCa(new Date())
export const inNamespace = (name: string) => ({ namespace: NAMESPACE, name })
export const web = inNamespace('web')

interface Options {
  readonly issuer?: (real: CertificateIssuer) => CertificateIssuer
}

/** The controllers of tunnels over a real store, with a clock that a test moves on. */
export async function startTunnels({ issuer = (real) => real }: Options = {}) {
  const { store, ...temporary } = await openTemporaryStore()
  const clock = createVirtualClock()
  const began = Date.now()
  const now = () => new Date(began + clock.now())
  const set = createCacheSet({ store, onError: () => undefined })
  const [regions, endpoints] = [set.cached(Region), set.cached(TunnelEndpoint)]
  const tunnels = set.cached(Tunnel, tunnelIndexes)
  const tunnelPasswords = set.cached(TunnelPassword, passwordIndexes)
  const controllers = createTunnelControllers({
    ...{ store, regions, endpoints, tunnels, tunnelPasswords, now, report: createReporter({ store, now }) },
    issuers: { local: issuer(localIssuer(() => ca, now)), acme: undefined },
    runtime: { ensure: () => Promise.resolve({ ready: 1 }), onChange: () => () => undefined },
    controller: (about) => createController({ ...about, clock, log: pino({ level: 'silent' }), onResult: () => undefined }),
  })
  const stop = new AbortController()
  await store.create(Namespace, { metadata: { name: NAMESPACE } })
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  const work = Promise.all([set.run(stop.signal), ...controllers.map((controller) => controller.run(stop.signal))])
  await set.synced()

  const until = (name: string, wanted: (tunnel: Tunnel) => boolean): Promise<Tunnel> =>
    tunnels.waitFor(inNamespace(name), (found) => (found && wanted(found) ? found : undefined), stop.signal)
  return {
    ...{ store, now, until, advance: (ms: number) => clock.advance(ms) },
    reason: (reason: string, name = 'web') => until(name, (tunnel) => conditionOf(tunnel, 'Ready')?.reason === reason),
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
      await work
      await temporary[Symbol.asyncDispose]()
    },
  }
}

export const hostnameOf = ({ status }: Tunnel): string => status?.hostname ?? ''
export const obtainedAt = ({ status }: Tunnel): number => Date.parse(status?.certificate?.obtainedAt ?? '')
export const endOf = (status: Tunnel['status']): number => Date.parse(status?.certificate?.expiresAt ?? '')
