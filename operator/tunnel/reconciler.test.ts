import { X509Certificate } from 'node:crypto'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { Namespace, Secret } from '../../crds/core.ts'
import { annotations, FINALIZER, labels, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { Region } from '../../crds/region.ts'
import { HOSTNAME, Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../../crds/tunnel-password.ts'
import { createCacheSet } from '../../store/cache-set.ts'
import { conditionOf } from '../../store/conditions.ts'
import { openTemporaryStore } from '../../store/embedded/open-temporary.ts'
import { REGION_ID } from '../../test/builders/shared-instance.ts'
import { createVirtualClock } from '../../test/support/virtual-clock.ts'
import { createCa } from '../certificates/local-ca.ts'
import { createReporter } from '../reporter.ts'
import { createController } from '../runtime/controller.ts'
import { type CertificateIssuer, localIssuer } from './certificate-issuer.ts'
import { createTunnelControllers } from './controllers.ts'
import { passwordIndexes, tunnelIndexes } from './indexes.ts'

const NAMESPACE = 'acme--prod'
const HOUR = 3_600_000
const DAY = 24 * HOUR
const ca = await createCa(new Date())
const inNamespace = (name: string) => ({ namespace: NAMESPACE, name })
const web = inNamespace('web')

interface Options {
  readonly issuer?: (real: CertificateIssuer) => CertificateIssuer
}

/** The controllers of tunnels over a real store, with a clock that a test moves on. */
async function start({ issuer = (real) => real }: Options = {}) {
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

const hostnameOf = ({ status }: Tunnel): string => status?.hostname ?? ''
const obtainedAt = ({ status }: Tunnel): number => Date.parse(status?.certificate?.obtainedAt ?? '')
const endOf = (status: Tunnel['status']): number => Date.parse(status?.certificate?.expiresAt ?? '')

test('a tunnel waits for its region and an endpoint, then has a hostname, a URL and a certificate for it', async () => {
  await using at = await start()
  await at.makeTunnel()
  await at.reason('UnknownRegion')
  await at.makeRegion()
  await at.reason('NoActiveEndpoint')
  await at.makeEndpoint('idle', { active: false })
  await at.makeEndpoint('a')
  const tunnel = await at.reason('Assigned')
  const hostname = hostnameOf(tunnel)
  expect(hostname).toMatch(HOSTNAME)
  expect(tunnel.metadata.finalizers).toEqual([FINALIZER])
  expect(tunnel.status).toMatchObject({
    ...{ url: `https://${hostname}.a.test`, endpointRef: { name: 'a' } },
    certificate: { status: 'valid', domain: `${hostname}.a.test`, issuer: 'Mooring local CA' },
  })
  const secret = await at.secretOf(hostname)
  expect(secret?.metadata.labels).toMatchObject({ [labels.endpoint]: 'a' })
  const certificate = new X509Certificate(Buffer.from(secret?.data['tls.crt'] ?? '', 'base64'))
  expect(certificate.checkHost(`${hostname}.a.test`)).toBeDefined()
  expect(certificate.verify(new X509Certificate(ca.certificate).publicKey)).toBe(true)
})

test('tunnels get hostnames of their own, spread over the endpoints, and keep them through every change', async () => {
  await using at = await start()
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeEndpoint('b')
  const names = ['one', 'two', 'three', 'four']
  const made: Tunnel[] = []
  for (const name of names) {
    await at.makeTunnel(name)
    made.push(await at.reason('Assigned', name))
  }
  expect(new Set(made.map(hostnameOf)).size).toBe(4)
  expect(made.map(({ status }) => status?.endpointRef?.name)).toEqual(['a', 'b', 'a', 'b'])
  await at.store.mergePatch(TunnelEndpoint, { name: 'a' }, { spec: { active: false } })
  await at.store.mergePatch(Tunnel, inNamespace('one'), { spec: { config: { httpsOnly: true } } })
  const after = await at.until('one', ({ status }) => status?.observedGeneration === 2)
  expect([hostnameOf(after), after.status?.endpointRef]).toEqual([made.map(hostnameOf)[0], { name: 'a' }])
})

test('a certificate that cannot be had is said to have failed, tried again when the status says, and then is as if nothing had been', async () => {
  let isDown = true
  await using at = await start({
    issuer: (real) => ({
      ...real,
      obtain: (name) => (isDown ? Promise.reject(new Error('the authority is away')) : real.obtain(name)),
    }),
  })
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  const failed = await at.until('web', ({ status }) => status?.certificate?.status === 'failed')
  expect(failed.status?.certificate).toMatchObject({
    ...{ domain: `${hostnameOf(failed)}.a.test`, lastError: 'the authority is away' },
    nextAttemptAt: new Date(at.now().getTime() + 60_000).toISOString(),
  })
  expect(conditionOf(failed, 'Ready')).toMatchObject({ status: 'False', reason: 'ObtainingCertificate' })

  isDown = false
  await at.advance(61_000)
  const { status } = await at.reason('Assigned')
  expect(status?.hostname).toBe(hostnameOf(failed))
  expect(Object.keys(status?.certificate ?? {}).toSorted()).toEqual(['domain', 'expiresAt', 'issuer', 'obtainedAt', 'status'])
})

test('a certificate is obtained anew at two thirds of its life and stays valid when that fails; one that ended is expired', async () => {
  let isDown = false
  await using at = await start({
    issuer: (real) => ({
      ...real,
      obtain: (name) => (isDown ? Promise.reject(new Error('the authority is away')) : real.obtain(name)),
    }),
  })
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  const hostname = hostnameOf(await at.reason('Assigned'))
  const first = (await at.secretOf(hostname))?.data['tls.crt']
  isDown = true
  await at.advance(70 * DAY)
  const due = await at.until('web', ({ status }) => status?.certificate?.lastError !== undefined)
  expect(due.status?.certificate?.status).toBe('valid')
  expect(conditionOf(due, 'Ready')?.status).toBe('True')
  expect(conditionOf(due, 'Renewing')).toMatchObject({
    ...{ status: 'True', reason: 'AttemptFailed', message: 'the authority is away' },
  })
  await at.advance(30 * DAY)
  const ended = await at.until('web', ({ status }) => status?.certificate?.status === 'expired')
  expect(conditionOf(ended, 'Ready')?.status).toBe('False')
  expect(conditionOf(ended, 'Renewing')).toBeUndefined()
  isDown = false
  await at.advance(61_000)
  await at.reason('Assigned')
  expect((await at.secretOf(hostname))?.data['tls.crt']).not.toBe(first)
})

test('a certificate is renewed on schedule without anybody’s doing, serves on meanwhile, and says that it is renewed', async () => {
  const asked = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()]
  let times = 0
  await using at = await start({
    issuer: (real) => ({
      ...real,
      async obtain(name) {
        await asked[times++]?.promise
        return real.obtain(name)
      },
    }),
  })
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  asked[0]?.resolve(undefined)
  const { status: before } = await at.reason('Assigned')
  expect(before?.conditions?.map(({ type }) => type)).toEqual(['Ready'])
  await at.advance(50 * DAY)
  expect(times).toBe(1)
  await at.advance(11 * DAY)
  const renewing = await at.until('web', (tunnel) => conditionOf(tunnel, 'Renewing') !== undefined)
  expect(conditionOf(renewing, 'Renewing')).toMatchObject({ status: 'True', reason: 'Due' })
  expect(conditionOf(renewing, 'Ready')?.status).toBe('True')
  expect(renewing.status?.certificate).toEqual(before?.certificate)
  asked[1]?.resolve(undefined)
  const { status: after } = await at.until('web', (tunnel) => conditionOf(tunnel, 'Renewing') === undefined)
  expect(after?.certificate?.status).toBe('valid')
  expect(endOf(after) - endOf(before)).toBe(61 * DAY)
})

test('a certificate was obtained when it was signed, which is neither before its tunnel was there nor when it begins to count', async () => {
  await using at = await start()
  await at.makeRegion()
  await at.makeEndpoint('a')
  const made = at.now().getTime()
  await at.makeTunnel()
  const first = await at.reason('Assigned')
  expect(obtainedAt(first)).toBeGreaterThanOrEqual(made)
  expect(obtainedAt(first)).toBeLessThanOrEqual(at.now().getTime())
  await at.advance(61 * DAY)
  const renewed = await at.until('web', (tunnel) => endOf(tunnel.status) > endOf(first.status))
  expect(obtainedAt(renewed) - obtainedAt(first)).toBeGreaterThanOrEqual(50 * DAY)
  expect(obtainedAt(renewed)).toBeLessThanOrEqual(at.now().getTime())
})

test.each(['', 'yesterday', '2020-01-01T00:00:00.000Z', '9999-01-01T00:00:00.000Z'])(
  'of a certificate whose Secret says %j, what it says itself counts',
  async (words) => {
    await using at = await start()
    await at.makeRegion()
    await at.makeEndpoint('a')
    await at.makeTunnel()
    const tunnel = await at.reason('Assigned')
    const key = { namespace: SYSTEM_NAMESPACE, name: `tunnel-${hostnameOf(tunnel)}-certificate` }
    await at.store.mergePatch(Secret, key, { metadata: { annotations: { [annotations.obtainedAt]: words } } })
    await at.store.mergePatch(Tunnel, web, { spec: { config: { httpsOnly: true } } })
    const after = await at.until('web', ({ status }) => status?.observedGeneration === 2)
    const { validFromDate } = new X509Certificate(
      Buffer.from((await at.secretOf(hostnameOf(tunnel)))?.data['tls.crt'] ?? '', 'base64'),
    )
    expect(obtainedAt(after)).toBe(validFromDate.getTime())
  },
)

test('a tunnel whose endpoint nobody serves is not ready, and is again when somebody does', async () => {
  await using at = await start()
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  const { status } = await at.reason('Assigned')
  await at.store.mergePatch(TunnelEndpoint, { name: 'a' }, { spec: { replicas: 0 } })
  const idle = await at.reason('EndpointNotServed')
  expect(conditionOf(idle, 'Ready')).toMatchObject({ status: 'False', message: 'no edge serves a.test' })
  expect(idle.status?.url).toBe(status?.url)
  await at.store.mergePatch(TunnelEndpoint, { name: 'a' }, { spec: { replicas: 1 } })
  expect((await at.reason('Assigned')).status?.url).toBe(status?.url)
})

test('a tunnel is given to no endpoint that nobody serves: it waits for one that somebody does', async () => {
  await using at = await start()
  await at.makeRegion()
  await at.makeEndpoint('a', { replicas: 0 })
  await at.makeTunnel()
  const waiting = await at.reason('NoActiveEndpoint')
  expect(conditionOf(waiting, 'Ready')?.message).toBe('region 1 has no active endpoint with edges')
  await at.makeEndpoint('b')
  expect((await at.reason('Assigned')).status?.endpointRef).toEqual({ name: 'b' })
  await at.store.mergePatch(TunnelEndpoint, { name: 'a' }, { spec: { replicas: 1 } })
  await at.makeTunnel('next')
  expect((await at.reason('Assigned', 'next')).status?.endpointRef).toEqual({ name: 'a' })
})

test('an authority that signs what is no good is not asked again before its time', async () => {
  let asked = 0
  await using at = await start({
    issuer: (real) => ({
      ...real,
      obtain: () => {
        asked += 1
        return real.obtain('another.test')
      },
    }),
  })
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  const { status } = await at.until('web', (tunnel) => tunnel.status?.certificate?.status === 'failed')
  expect(status?.certificate?.lastError).toBe('the certificate that was signed is no good')
  expect(asked).toBe(1)
})

test('a tunnel that is deleted, or whose time has passed, takes its certificate and its hostname with it', async () => {
  await using at = await start()
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  const hostname = hostnameOf(await at.reason('Assigned'))
  await at.store.delete(Tunnel, web)
  await at.gone()
  expect(await at.secretOf(hostname)).toBeUndefined()

  await at.store.create(Tunnel, {
    metadata: web,
    spec: { regionId: 1, expiresAt: new Date(at.now().getTime() + HOUR).toISOString() },
  })
  const next = hostnameOf(await at.reason('Assigned'))
  expect(next).not.toBe(hostname)
  await at.advance(HOUR)
  await at.gone()
  expect(await at.secretOf(next)).toBeUndefined()
})
