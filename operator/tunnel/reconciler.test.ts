import { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { annotations, FINALIZER, labels, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { HOSTNAME, Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { conditionOf } from '../../store/conditions.ts'
import {
  ca,
  hostnameOf,
  HOUR,
  inNamespace,
  obtainedAt,
  startTunnels,
  web,
} from '../../test/support/operator/tunnel-controllers.ts'

test('a tunnel waits for its region and an endpoint, then has a hostname, a URL and a certificate for it', async () => {
  await using at = await startTunnels()
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
    certificate: {
      status: 'valid',
      domain: `${hostname}.a.test`,
      issuer: expect.stringMatching(/^Mooring local CA [0-9a-f]{8}$/) as string,
    },
  })
  const secret = await at.secretOf(hostname)
  expect(secret?.metadata.labels).toMatchObject({ [labels.endpoint]: 'a' })
  const certificate = new X509Certificate(Buffer.from(secret?.data['tls.crt'] ?? '', 'base64'))
  expect(certificate.checkHost(`${hostname}.a.test`)).toBeDefined()
  expect(certificate.verify(new X509Certificate(ca.certificate).publicKey)).toBe(true)
})

test('tunnels get unique hostnames, spread over the endpoints, and keep them through every change', async () => {
  await using at = await startTunnels()
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

/** Time within the lifetime of a new certificate, and later than any signature. */
const IN_A_MONTH = new Date(Date.now() + 30 * 24 * HOUR).toISOString()

test.each(['', 'yesterday', '2020-01-01T00:00:00.000Z', '9999-01-01T00:00:00.000Z', IN_A_MONTH])(
  'of a certificate whose Secret says %j, what it says itself counts',
  async (words) => {
    await using at = await startTunnels()
    await at.makeRegion()
    await at.makeEndpoint('a')
    await at.makeTunnel()
    const tunnel = await at.reason('Assigned')
    const key = { namespace: SYSTEM_NAMESPACE, name: `tunnel-${hostnameOf(tunnel)}-certificate` }
    await at.store.mergePatch(Secret, key, { metadata: { annotations: { [annotations.obtainedAt]: words } } })
    await at.store.patchStatus(Tunnel, web, { certificate: { ...tunnel.status?.certificate, status: 'obtaining' } })
    const after = await at.until('web', (now) => obtainedAt(now) !== obtainedAt(tunnel))
    const { validFromDate } = new X509Certificate(
      Buffer.from((await at.secretOf(hostnameOf(tunnel)))?.data['tls.crt'] ?? '', 'base64'),
    )
    expect(obtainedAt(after)).toBe(validFromDate.getTime())
  },
)

test('updatedAt is the annotation of the writer, otherwise the time of the first reconcile, without an extra write', async () => {
  await using at = await startTunnels()
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  expect((await at.reason('Assigned')).status?.updatedAt).toBeUndefined()
  // Versions count all writes of the store: the endpoint has its tunnel count, and writes no more.
  await expect.poll(async () => (await at.store.get(TunnelEndpoint, { name: 'a' }))?.status?.tunnels, { timeout: 60_000 }).toBe(1)
  const change = async (generation: number, config: object, marks: Readonly<Record<string, string>> = {}) => {
    const { metadata } = await at.store.mergePatch(Tunnel, web, { metadata: { annotations: marks }, spec: { config } })
    const { metadata: last, status } = await at.until('web', (tunnel) => tunnel.status?.observedGeneration === generation)
    expect(Number(last.resourceVersion) - Number(metadata.resourceVersion)).toBe(1)
    return status?.updatedAt
  }
  const now = () => at.now().toISOString()
  const byRest = (ms: number) => ({ [annotations.updatedAt]: new Date(at.now().getTime() + ms).toISOString() })

  await at.advance(HOUR)
  expect(await change(2, { httpsOnly: true })).toBe(now())
  await at.advance(HOUR)
  const said = byRest(-5)
  expect(await change(3, { httpsOnly: false }, said)).toBe(said[annotations.updatedAt])
  await at.advance(HOUR)
  expect(await change(4, { httpsOnly: true })).toBe(now())
  await at.advance(HOUR)
  expect(await change(5, { httpsOnly: false }, { [annotations.updatedAt]: 'yesterday' })).toBe(now())
})

test('a tunnel whose endpoint has no edges is not ready until it has', async () => {
  await using at = await startTunnels()
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

test('a tunnel whose endpoint is recreated with another domain has its new URL before its new certificate', async () => {
  let isDown = false
  await using at = await startTunnels({
    issuer: (real) => ({
      ...real,
      obtain: (name) => (isDown ? Promise.reject(new Error('the authority is away')) : real.obtain(name)),
    }),
  })
  await at.makeRegion()
  await at.makeEndpoint('a')
  const { metadata: made } = await at.makeTunnel()
  const hostname = hostnameOf(await at.reason('Assigned'))
  const isAt = (domain: string) => (tunnel: Tunnel) => tunnel.status?.url === `https://${hostname}.${domain}`
  const move = async (domain: string) => {
    // As after a connect, which the poller writes.
    await at.store.patchStatus(Tunnel, made, { connected: true, sessions: 1 })
    await at.store.delete(TunnelEndpoint, { name: 'a' })
    expect((await at.reason('EndpointMissing')).status).toMatchObject({ connected: false, sessions: 0 })
    await at.makeEndpoint('a', { domain })
  }
  await move('b.test')
  await at.until('web', isAt('b.test'))
  const moved = await at.reason('Assigned')
  expect([moved.status?.certificate?.domain, isAt('b.test')(moved)]).toEqual([`${hostname}.b.test`, true])
  isDown = true
  await move('c.test')
  const { status } = await at.until('web', (tunnel) => tunnel.status?.certificate?.lastError !== undefined)
  expect(status?.url).toBe(`https://${hostname}.c.test`)
})

test('a tunnel waits for an endpoint with edges', async () => {
  await using at = await startTunnels()
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

test('certificate and hostname of a deleted or expired tunnel are removed', async () => {
  await using at = await startTunnels()
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
