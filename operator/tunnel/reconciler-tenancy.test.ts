import { expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { labels } from '../../crds/names.ts'
import { NAMESPACE, startTunnels } from '../../test/support/operator/tunnel-controllers.ts'

const setLabels = ({ store }: Awaited<ReturnType<typeof startTunnels>>, changed: Readonly<Record<string, string | null>>) =>
  store.mergePatch(Namespace, { name: NAMESPACE }, { metadata: { labels: changed as Readonly<Record<string, string>> } })

test('a tunnel is served only while its Namespace is a tenant’s, and keeps hostname and URL', async () => {
  await using at = await startTunnels({ labels: { [labels.organization]: 'acme' }, max: 1 })
  await at.makeRegion()
  await at.makeEndpoint('b')
  await at.makeTunnel()
  const refused = await at.reason('NoAccess')
  expect(refused.metadata.finalizers).toBeUndefined()
  expect(refused.status).not.toHaveProperty('hostname')

  await setLabels(at, { [labels.namespace]: 'prod' })
  const { status: served } = await at.reason('Assigned')
  await at.makeEndpoint('a')
  await setLabels(at, { [labels.organization]: 'other' })
  const { status: withdrawn } = await at.reason('NoAccess')
  expect(withdrawn).toMatchObject({ hostname: served?.hostname, connected: false })
  expect(withdrawn).not.toHaveProperty('endpointRef')

  await setLabels(at, { [labels.organization]: 'acme' })
  const { hostname, url, endpointRef, certificate } = served ?? {}
  const { obtainedAt } = certificate ?? {}
  expect((await at.reason('Assigned')).status).toMatchObject({ hostname, url, endpointRef, certificate: { obtainedAt } })
  expect(at.told()).toEqual([
    'Tunnel NoAccess: its Namespace acme--prod has no label mooring.dev/namespace=prod',
    'Tunnel NoAccess: its Namespace acme--prod has the label mooring.dev/organization=other, not acme',
  ])
})
