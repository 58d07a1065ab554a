import { randomUUID } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { Region } from '../../crds/region.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Store } from '../../store/port.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { region, tunnelEndpoint } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { ca } from '../../test/support/operator/tunnel-controllers.ts'
import { databaseIndexes } from '../dedicated-database/indexes.ts'
import { localIssuer } from '../tunnel/certificate-issuer.ts'
import { tunnelIndexes } from '../tunnel/indexes.ts'
import type { EdgeState } from './runtime.ts'
import { createEndpointReconciler, decisionOf } from './reconciler.ts'

/** Reconciler over a cache that the test sets, with an edge that is always up. */
async function bench(store: Store) {
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  const endpoints = settableCache(TunnelEndpoint)
  const report = vi.fn<(...said: readonly unknown[]) => Promise<void>>(() => Promise.resolve())
  const ensure = vi.fn(() => Promise.resolve({ ready: 1 }))
  const reconcile = createEndpointReconciler({
    ...{ store, endpoints: endpoints.cache, issuers: { local: localIssuer(() => ca), acme: undefined }, report },
    ...{ regions: settableCache(Region).cache, tunnels: settableCache(Tunnel, tunnelIndexes).cache },
    databases: settableCache(DedicatedDatabase, databaseIndexes).cache,
    now: () => new Date(),
    runtime: { ensure, onChange: () => () => undefined },
  })
  return { endpoints, report, ensure, reconcile }
}

test('an endpoint recreated with its domain has the same host keys', async () => {
  await using opened = await openTemporaryStore()
  const { endpoints, report, reconcile } = await bench(opened.store)
  const endpoint = tunnelEndpoint()
  const { metadata } = endpoint
  endpoints.put(endpoint)
  await reconcile(metadata)
  endpoints.remove(endpoint)
  await reconcile(metadata)
  const again = { ...endpoint, metadata: { ...metadata, name: 'another', uid: randomUUID() } }
  endpoints.put(again)
  await reconcile(again.metadata)
  const [before, after] = report.mock.calls.map((said) => (said[3] as { readonly hostKeys: readonly string[] }).hostKeys)
  expect(before).toHaveLength(3)
  expect(after).toEqual(before)
})

test('the younger of two endpoints with one domain gets neither host keys nor edges until the older one is deleted', async () => {
  await using opened = await openTemporaryStore()
  const { endpoints, report, ensure, reconcile } = await bench(opened.store)
  const older = tunnelEndpoint()
  const { metadata } = older
  const younger = {
    ...older,
    metadata: { ...metadata, name: 'younger', uid: randomUUID(), creationTimestamp: '2100-01-01T00:00:00Z' },
  }
  endpoints.put(older)
  endpoints.put(younger)
  await reconcile(younger.metadata)
  expect(report.mock.lastCall?.[2]).toMatchObject({ status: 'False', reason: 'DomainTaken' })
  expect(report.mock.lastCall?.[3]).not.toHaveProperty('hostKeys')
  expect(ensure).not.toHaveBeenCalled()
  endpoints.remove(older)
  await reconcile(younger.metadata)
  expect(report.mock.lastCall?.[3]).toMatchObject({ hostKeys: expect.any(Array) as unknown })
  expect(ensure).toHaveBeenCalledOnce()
})

const PENDING = 'the load balancer has no address yet'
test.each<{ does: string; state: EdgeState; reason: string }>([
  { does: 'no edge responds', state: { ready: 0, addressPending: PENDING }, reason: 'Starting' },
  { does: 'the load balancer is pending', state: { ready: 2, addressPending: PENDING }, reason: 'AddressPending' },
  { does: 'the edges have an address', state: { ready: 2 }, reason: 'Serving' },
])('an endpoint is $reason while $does', ({ state, reason }) => {
  const endpoint = tunnelEndpoint()
  const issuers = { local: localIssuer(() => ca), acme: undefined }
  const seen = { regions: [region({ id: endpoint.spec.region })], issuers, state, certificate: undefined, problem: undefined }
  const decision = decisionOf(endpoint, seen)
  expect(decision).toMatchObject({ reason, status: reason === 'Serving' ? 'True' : 'False' })
  if (reason === 'AddressPending') expect(decision.message).toBe(PENDING)
})
