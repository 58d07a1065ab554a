import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import { ClusterRoleBinding, Namespace } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { openTemporaryStore } from '../../../test/support/store/temporary-store.ts'
import type { KubernetesClient } from '../../../store/kubernetes/client.ts'
import type { KubernetesStore } from '../../../store/kubernetes.ts'
import { createVirtualClock } from '../../../test/support/clocks.ts'
import { createCa, type KeyPair } from '../../certificates/local-ca.ts'
import { endpoint, settings } from '../../../test/support/operator/kubernetes-objects.ts'
import { createKubernetesEdges } from './kubernetes-edges.ts'
import { EDGE_CLUSTER_ROLE } from './kinds.ts'

const ca = await createCa(new Date())
const POLL_MS = 10_000

/** Response of an API server to an applied object. */
const request: KubernetesClient['request'] = async ({ body }) => {
  const { metadata, ...rest } = body as { readonly metadata: object }
  const own = { uid: 'a-uid', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z', managedFields: [] }
  return { status: 200, body: { ...rest, metadata: { ...metadata, ...own } } }
}

async function start(authority: () => KeyPair = () => ca) {
  const { store, ...opened } = await openTemporaryStore()
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: EDGE_CLUSTER_ROLE }
  await store.create(ClusterRoleBinding, { metadata: { name: EDGE_CLUSTER_ROLE }, roleRef, subjects: [] })
  const eu = await store.create(TunnelEndpoint, { metadata: { name: 'eu' }, spec: endpoint().spec })
  const clock = createVirtualClock()
  const certificates: string[] = []
  const edges = createKubernetesEdges({
    store: { ...store, client: { request } } as unknown as KubernetesStore,
    ...{ settings: settings(), clock, logger: pino({ level: 'silent' }) },
    endpoints: () => [eu],
    certificates: () => certificates,
    ca: authority,
  })
  return {
    ...{ store, eu, clock, certificates, edges },
    async [Symbol.asyncDispose]() {
      await edges.close()
      await opened[Symbol.asyncDispose]()
    },
  }
}

test('a failure of the certificate for unknown hosts does not delay permissions for tunnels', async () => {
  await using at = await start(() => {
    throw new Error('no authority')
  })
  const { edges, eu, clock, certificates } = at
  certificates.push(...Array.from({ length: 1_000 }, (_, index) => `tunnel-${index}-certificate`))
  await edges.ensure(eu)
  const told = vi.fn()
  edges.onChange(told)
  await edges.tunnelsChanged('eu')
  await clock.advance(499)
  expect(told).not.toHaveBeenCalled()
  await clock.advance(1)
  expect(told.mock.calls).toEqual([['eu']])
})

test('a deleted endpoint is not reconciled any more', async () => {
  await using at = await start(() => {
    throw new Error('no authority')
  })
  const { edges, eu, clock } = at
  await edges.ensure(eu)
  await edges.forget('eu')
  const told = vi.fn()
  edges.onChange(told)
  await clock.advance(2 * POLL_MS)
  expect(told).not.toHaveBeenCalled()
})

test('a binding of the edges that was emptied by hand is restored within ten seconds', async () => {
  await using at = await start()
  const { store, edges, eu, clock } = at
  const subjects = async () =>
    (await store.get(ClusterRoleBinding, { name: EDGE_CLUSTER_ROLE }))?.subjects.map(({ name }) => name)
  // The subjects of the binding are derived from the endpoints, which must be known first.
  await clock.advance(POLL_MS)
  expect(await subjects()).toEqual([])
  await edges.ensure(eu)
  expect(await subjects()).toEqual(['edge-eu'])
  await store.mergePatch(ClusterRoleBinding, { name: EDGE_CLUSTER_ROLE }, { subjects: [] })
  await clock.advance(POLL_MS)
  await expect.poll(subjects).toEqual(['edge-eu'])
})
