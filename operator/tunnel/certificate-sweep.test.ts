import { expect, test } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { labels, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { Tunnel, type TunnelCertificate } from '../../crds/tunnel.ts'
import type { Patch, Store } from '../../store/port.ts'
import { DAY, endOf, hostnameOf, NAMESPACE, obtainedAt, startTunnels } from '../../test/support/operator/tunnel-controllers.ts'

const ROUND_MS = 10_000

const keyOf = (tunnel: Tunnel) => ({ namespace: SYSTEM_NAMESPACE, name: `tunnel-${hostnameOf(tunnel)}-certificate` })
const patch = (what: Patch) => (store: Store, tunnel: Tunnel) => store.mergePatch(Secret, keyOf(tunnel), what)

test.each([
  { how: 'deleted', damage: (store: Store, tunnel: Tunnel) => store.delete(Secret, keyOf(tunnel)) },
  { how: 'emptied', damage: patch({ data: { 'tls.crt': null, 'tls.key': null } }) },
  { how: 'given a certificate that is none', damage: patch({ data: { 'tls.crt': 'bm8=' } }) },
  { how: 'robbed of its key', damage: patch({ data: { 'tls.key': null } }) },
  { how: 'given another key', damage: patch({ data: { 'tls.key': 'bm8=' } }) },
  { how: 'robbed of its label, without which no edge takes it', damage: patch({ metadata: { labels: null } }) },
])('a certificate that is $how by hand is obtained anew within a round, with a new time in the status', async ({ damage }) => {
  await using at = await startTunnels()
  at.sweep()
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  const before = await at.reason('Assigned')
  await at.advance(ROUND_MS)
  await damage(at.store, before)
  await at.advance(2 * ROUND_MS)
  const after = await at.until('web', (tunnel) => obtainedAt(tunnel) > obtainedAt(before))
  expect(after.status?.certificate?.status).toBe('valid')
  const mended = await at.secretOf(hostnameOf(before))
  expect(mended?.metadata.labels).toEqual({ [labels.endpoint]: 'a' })
  expect(Object.keys(mended?.data ?? {}).toSorted()).toEqual(['tls.crt', 'tls.key'])
})

test('while another certificate cannot be obtained, the status does not call the missing one valid', async () => {
  let slow = Promise.resolve()
  await using at = await startTunnels({
    issuer: (real) => ({ ...real, obtain: async (name) => slow.then(() => real.obtain(name)) }),
  })
  at.sweep()
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  const before = await at.reason('Assigned')
  const signed = Promise.withResolvers<undefined>()
  slow = signed.promise.then(() => undefined)
  await at.store.delete(Secret, keyOf(before))
  await at.advance(2 * ROUND_MS)
  const { status } = await at.reason('ObtainingCertificate')
  // Edges that hold the certificate keep serving with it.
  expect(status?.certificate).toEqual({ ...before.status?.certificate, status: 'obtaining' })
  signed.resolve(undefined)
  await at.reason('Assigned')
})

test('a sweep without findings writes nothing, and reads at most twenty Secrets in ten seconds', async () => {
  await using at = await startTunnels()
  at.sweep()
  await at.makeRegion()
  await at.makeEndpoint('a')
  const names = Array.from({ length: 50 }, (_, index) => `t-${index}`)
  for (const name of names) await at.makeTunnel(name)
  for (const name of names) await at.reason('Assigned', name)
  // Lets the present round end.
  await at.advance(4 * ROUND_MS)
  // The endpoint counts its tunnels last, some time after the clock lets it.
  await at.counted('a', names.length)
  const { resourceVersion } = await at.store.list(Tunnel)
  let most = 0
  let before = at.looks()
  const first = before
  for (let times = 0; times < 9; times++) {
    await at.advance(ROUND_MS)
    most = Math.max(most, at.looks() - before)
    before = at.looks()
  }
  expect(most).toBeLessThanOrEqual(20)
  expect(at.looks() - first).toBe(3 * names.length)
  expect((await at.store.list(Tunnel)).resourceVersion).toBe(resourceVersion)
  expect((await at.store.list(Secret)).resourceVersion).toBe(resourceVersion)
})

test('many certificates lost together are restored soon', async () => {
  await using at = await startTunnels()
  at.sweep()
  await at.makeRegion()
  await at.makeEndpoint('a')
  const names = Array.from({ length: 40 }, (_, index) => `t-${index}`)
  for (const name of names) await at.makeTunnel(name)
  const before = await Promise.all(names.map((name) => at.reason('Assigned', name)))
  for (const tunnel of before) await at.store.delete(Secret, keyOf(tunnel))
  let left = names.length
  const back = names.map(async (name, index) => {
    await at.until(name, (tunnel) => before[index] !== undefined && obtainedAt(tunnel) > obtainedAt(before[index]))
    left -= 1
  })
  while (left > 0) await at.advance(1_000)
  await Promise.all(back)
})

test('a restored certificate that expires before the time in the status is described by the status', async () => {
  await using at = await startTunnels()
  at.sweep()
  await at.makeRegion()
  await at.makeEndpoint('a')
  await at.makeTunnel()
  const { status, metadata } = await at.reason('Assigned')
  const certificate = { ...status?.certificate, expiresAt: new Date(endOf(status) + DAY).toISOString() } as TunnelCertificate
  await at.store.patchStatus(Tunnel, { namespace: NAMESPACE, name: metadata.name }, { certificate })
  await at.until('web', (tunnel) => endOf(tunnel.status) > endOf(status))
  await at.advance(2 * ROUND_MS)
  const mended = await at.until('web', (tunnel) => endOf(tunnel.status) === endOf(status))
  expect(mended.status?.certificate).toEqual(status?.certificate)
})
