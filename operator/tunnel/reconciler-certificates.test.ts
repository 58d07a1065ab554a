import { expect, test } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { annotations, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { Tunnel, type TunnelCertificate } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { CertificateIssuer } from './certificate-issuer.ts'
import { DAY, endOf, HOUR, hostnameOf, obtainedAt, startTunnels, web } from '../../test/support/operator/tunnel-controllers.ts'
import { ISSUER_MISSING } from './resources.ts'

const ROUND_MS = 10_000

const awayWhile = (isDown: () => boolean) => (real: CertificateIssuer) => ({
  ...real,
  obtain: (name: string) => (isDown() ? Promise.reject(new Error('the authority is away')) : real.obtain(name)),
})

const eventsOf = (status: Tunnel['status']) => status?.certificate?.history?.map(({ event }) => event)

test('a failed certificate is reported, tried again at the time in the status, and leaves no trace after a success', async () => {
  let isDown = true
  await using at = await startTunnels({ issuer: awayWhile(() => isDown) })
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
  expect(Object.keys(status?.certificate ?? {}).toSorted()).toEqual([
    'domain',
    'expiresAt',
    'history',
    'issuer',
    'obtainedAt',
    'status',
  ])
})

test('a certificate is renewed at two thirds of its lifetime, stays valid when that fails, and expires at its end', async () => {
  let isDown = false
  await using at = await startTunnels({ issuer: awayWhile(() => isDown) })
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

test('a certificate is renewed on schedule, stays in use meanwhile, and reports the renewal', async () => {
  const asked = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()]
  let times = 0
  await using at = await startTunnels({
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
  await at.store.mergePatch(Tunnel, web, { spec: { config: { httpsOnly: true } } })
  // The work started by those days has ended by then.
  await at.until('web', ({ status }) => status?.observedGeneration === 2)
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

test('obtainedAt is the time of signing, not the begin of the validity', async () => {
  await using at = await startTunnels()
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

test('an issuer of invalid certificates is not asked again before the next attempt', async () => {
  let asked = 0
  await using at = await startTunnels({
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
  expect(status?.certificate?.lastError).toBe('the signed certificate is not valid for the tunnel')
  expect(asked).toBe(1)
})

test('the Secret of a certificate in the status is read only when the certificate is due', async () => {
  await using at = await startTunnels()
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  const first = await at.reason('Assigned')
  const looks = async (httpsOnly: boolean, generation: number) => {
    await at.store.mergePatch(Tunnel, web, { spec: { config: { httpsOnly } } })
    await at.until('web', ({ status }) => status?.observedGeneration === generation)
    return at.reads()
  }
  // Reconciles that began before the status was written have ended by then.
  const before = await looks(true, 2)
  expect(await looks(false, 3)).toBe(before)
  await at.advance(61 * DAY)
  await at.until('web', ({ status }) => endOf(status) > endOf(first.status))
  expect(at.reads()).toBeGreaterThan(before)
})

test.each([
  { what: 'another issuer is configured', said: { issuer: 'the one before' } },
  { what: 'it is for another name', said: { domain: '*.a.test' } },
  { what: 'its expiry is missing', said: { expiresAt: null } },
])('the Secret of a certificate is read when by the status $what', async ({ said }) => {
  await using at = await startTunnels()
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  const { status } = await at.reason('Assigned')
  const certificate = { ...status?.certificate, ...said } as TunnelCertificate
  const { metadata } = await at.store.patchStatus(Tunnel, web, { certificate })
  const mended = await at.until('web', (tunnel) => Number(tunnel.metadata.resourceVersion) > Number(metadata.resourceVersion))
  expect(mended.status?.certificate).toEqual(status?.certificate)
  expect(conditionOf(mended, 'Ready')?.status).toBe('True')
})

test('an endpoint without an issuer reports that and gets no tunnels until it has one', async () => {
  await using at = await startTunnels()
  await at.makeRegion()
  await at.makeEndpoint('a', { issuer: 'acme' })
  await at.makeTunnel()
  await at.reason('NoActiveEndpoint')
  const ready = async () => conditionOf((await at.store.get(TunnelEndpoint, { name: 'a' })) ?? {}, 'Ready')
  await expect.poll(ready).toMatchObject({
    ...{ status: 'False', reason: 'IssuerMissing' },
    message: ISSUER_MISSING.message,
  })
  expect(at.told()).toContain(`TunnelEndpoint IssuerMissing: ${ISSUER_MISSING.message}`)
  await at.store.mergePatch(TunnelEndpoint, { name: 'a' }, { spec: { issuer: 'local' } })
  await at.reason('Assigned')
})

test('a tunnel whose issuer was removed keeps its certificate, reports the reason, and attempts no renewal', async () => {
  await using at = await startTunnels()
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  const before = await at.reason('Assigned')
  const version = async () => (await at.secretOf(hostnameOf(before)))?.metadata.resourceVersion
  const kept = await version()
  const sign = (issuer: string) => at.store.mergePatch(TunnelEndpoint, { name: 'a' }, { spec: { issuer } })
  const lastError = ISSUER_MISSING.message
  const sweepOnce = async () => {
    const stop = at.sweep()
    await at.advance(3 * ROUND_MS)
    await stop()
  }
  await sign('acme')
  const told = await at.until('web', ({ status }) => status?.certificate?.lastError !== undefined)
  expect(conditionOf(told, 'Ready')).toMatchObject({ status: 'True', reason: 'Assigned' })
  expect(told.status?.certificate).toEqual({ ...before.status?.certificate, lastError })
  await at.advance(80 * DAY)
  await sweepOnce()
  expect((await at.store.get(Tunnel, web))?.metadata.resourceVersion).toBe(told.metadata.resourceVersion)
  await at.advance(20 * DAY)
  const ended = await at.reason('IssuerMissing')
  expect(conditionOf(ended, 'Ready')).toMatchObject({ status: 'False', message: lastError })
  expect(ended.status?.certificate).toEqual({
    ...{ ...before.status?.certificate, status: 'expired', lastError },
    history: [expect.objectContaining({ event: 'expired' }), expect.objectContaining({ event: 'obtained' })],
  })
  await sweepOnce()
  expect(await version()).toBe(kept)
  await sign('local')
  const { status } = await at.reason('Assigned')
  expect(eventsOf(status)).toEqual(['obtained', 'expired', 'obtained'])
  expect(endOf(status)).toBeGreaterThan(endOf(before.status))
  expect(Object.keys(status?.certificate ?? {}).toSorted()).toEqual([
    'domain',
    'expiresAt',
    'history',
    'issuer',
    'obtainedAt',
    'status',
  ])
})

test('the wildcard certificate of an endpoint is deleted with it: a new endpoint of the name obtains another', async () => {
  await using at = await startTunnels()
  await at.makeRegion()
  await at.makeEndpoint('a', { certificates: 'wildcard' })
  await at.makeTunnel()
  const { status } = await at.reason('Assigned')
  const secret = { namespace: SYSTEM_NAMESPACE, name: 'endpoint-a-certificate' }
  const before = new Date(at.now().getTime() - HOUR / 2).toISOString()
  await at.store.mergePatch(Secret, secret, { metadata: { annotations: { [annotations.obtainedAt]: before } } })
  const certificate = { ...status?.certificate, status: 'obtaining' } as TunnelCertificate
  await at.store.patchStatus(Tunnel, web, { certificate })
  await at.until('web', (tunnel) => obtainedAt(tunnel) === Date.parse(before))
  await at.store.delete(TunnelEndpoint, { name: 'a' })
  await at.reason('EndpointMissing')
  expect(await at.store.get(Secret, secret)).toBeUndefined()
  await at.makeEndpoint('a', { certificates: 'wildcard' })
  await at.until('web', (tunnel) => obtainedAt(tunnel) > Date.parse(before))
  expect(await at.store.get(Secret, secret)).toBeDefined()
})
