import { expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { labels } from '../../crds/names.ts'
import { hostnameOf, NAMESPACE, startTunnels } from '../../test/support/operator/tunnel-controllers.ts'

const setLabels = ({ store }: Awaited<ReturnType<typeof startTunnels>>, changed: Readonly<Record<string, string | null>>) =>
  store.mergePatch(Namespace, { name: NAMESPACE }, { metadata: { labels: changed as Readonly<Record<string, string>> } })

test('a tunnel is served only while its Namespace is a tenant’s, and keeps hostname and URL', async () => {
  await using at = await startTunnels({ labels: { [labels.organization]: 'acme' }, max: 1 })
  await at.makeRegion()
  await at.makeEndpoint('b')
  await at.makeTunnel()
  const refused = await at.reason('NoAccess')
  expect([refused.metadata.finalizers, refused.status?.hostname, refused.status?.endpointRef]).toEqual([
    ...[undefined, undefined, undefined],
  ])

  await setLabels(at, { [labels.namespace]: 'prod' })
  const served = await at.reason('Assigned')
  await at.makeEndpoint('a')
  await setLabels(at, { [labels.organization]: 'other' })
  const withdrawn = await at.reason('NoAccess')
  expect([hostnameOf(withdrawn), withdrawn.status?.endpointRef, withdrawn.status?.connected]).toEqual([
    ...[hostnameOf(served), undefined, false],
  ])

  await setLabels(at, { [labels.organization]: 'acme' })
  const again = await at.reason('Assigned')
  expect([again.status?.url, again.status?.endpointRef]).toEqual([served.status?.url, { name: 'b' }])
  expect(again.status?.certificate?.obtainedAt).toBe(served.status?.certificate?.obtainedAt)
  expect(at.told()).toEqual([
    'Tunnel NoAccess: its Namespace acme--prod has no label mooring.dev/namespace=prod',
    'Tunnel NoAccess: its Namespace acme--prod has the label mooring.dev/organization=other, not acme',
  ])
})
