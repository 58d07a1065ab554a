import { expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { FINALIZER, SHARED_NAMESPACE } from '../../crds/names.ts'
import { Region } from '../../crds/region.ts'
import { isClaimed, SharedInstance } from '../../crds/shared-instance.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { keyOf } from '../../store/port.ts'
import { databaseServer, readyCondition, REGION_ID, sharedInstance } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { createQuota } from '../quota/quota.ts'
import { instanceIndexes } from '../shared-instance/indexes.ts'
import { createSlots } from '../shared-instance/slots.ts'
import { IDLE_MS } from './plan.ts'
import { createFleetReconciler } from './reconciler.ts'

const DOWN_AT = Date.parse('2026-01-02T03:04:06Z')
const DOWN = { engineVersion: '15.4', conditions: [readyCondition('False', 'Crashed')] }

interface FleetTraits {
  readonly warm?: boolean
  readonly server?: Parameters<typeof databaseServer>[0]
}

/** Region with one motor and one server of it; by default the motor is warm and the server went down after it had been ready. */
async function fleet({ warm = true, server = { status: DOWN } }: FleetTraits = {}) {
  const opened = await openTemporaryStore()
  const { store } = opened
  await store.create(Namespace, { metadata: { name: SHARED_NAMESPACE } })
  const region = await store.create(Region, {
    metadata: { name: 'here' },
    spec: { id: REGION_ID, regionId: 1, name: 'here', motors: [{ id: 'postgresql-15.4.0', warm }] },
  })
  const [regions, servers] = [settableCache(Region), settableCache(DatabaseServer)]
  const instances = settableCache(SharedInstance, instanceIndexes)
  regions.put(region)
  const first = databaseServer({ ...server, spec: { capacity: 50 } })
  servers.put(first)
  const clock = { ms: DOWN_AT }
  const slots = createSlots({ servers: servers.cache, instances: instances.cache })
  const reconcile = createFleetReconciler({
    ...{ store, regions: regions.cache, servers: servers.cache, instances: instances.cache, slots, capacityOf: () => 50 },
    quota: createQuota({ cache: instances.cache, max: 50, hasBegun: isClaimed }),
    now: () => new Date(clock.ms),
  })
  const made = async () => (await store.list(DatabaseServer)).items
  return {
    ...{ clock, instances, servers, slots, store, first, reconcile: () => reconcile(keyOf(region)) },
    made: async () => (await made()).map(({ metadata }) => metadata.name),
    /** Stores the server of the cache, so that it can be deleted. */
    async storeFirst() {
      const { name } = first.metadata
      const stored = await store.create(DatabaseServer, {
        metadata: { name, namespace: SHARED_NAMESPACE, finalizers: [FINALIZER] },
        spec: first.spec,
      })
      const since = new Date(clock.ms - IDLE_MS).toISOString()
      servers.put({ ...stored, metadata: { ...stored.metadata, creationTimestamp: since }, status: first.status })
    },
    isRetired: async () => (await made()).some(({ metadata }) => metadata.deletionTimestamp !== undefined),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

test('a server that does not come back is replaced after the time of a restart', async () => {
  await using it = await fleet()
  expect(await it.reconcile()).toEqual({ result: 'settled', reason: 'Enough', requeueAfterMs: 30_000 })
  it.clock.ms += 30_000
  expect(await it.reconcile()).toEqual({ result: 'settled', reason: 'ServerAdded' })
  expect(await it.made()).toEqual(['postgresql-15-4-0-r1-2'])
})

test('no server is started for instances above the quota of their namespace', async () => {
  await using it = await fleet()
  const wish = (name: string, namespace: string) => it.instances.put(sharedInstance({ metadata: { name, uid: name, namespace } }))
  for (let n = 0; n < 60; n++) wish(`i${n}`, 'acme--prod')
  expect(await it.reconcile()).toMatchObject({ reason: 'Enough' })
  wish('other', 'acme--test')
  expect(await it.reconcile()).toMatchObject({ reason: 'ServerAdded' })
})

test('a server of a cold motor is deleted once it has been without instances for ten minutes', async () => {
  await using it = await fleet({ warm: false, server: {} })
  await it.storeFirst()
  const onIt = sharedInstance({ status: { serverRef: { name: it.first.metadata.name } } })
  it.instances.put(onIt)
  expect(await it.reconcile()).toEqual({ result: 'settled', reason: 'Enough' })
  it.instances.remove(onIt)
  expect(await it.reconcile()).toEqual({ result: 'settled', reason: 'Enough', requeueAfterMs: IDLE_MS })
  it.clock.ms += IDLE_MS - 1
  expect(await it.reconcile()).toEqual({ result: 'settled', reason: 'Enough', requeueAfterMs: 1 })
  it.clock.ms += 1
  expect(await it.reconcile()).toEqual({ result: 'settled', reason: 'ServerRetired' })
  expect(await it.isRetired()).toBe(true)
  // The cache does not show the deletion yet.
  expect(it.slots.choose(sharedInstance())).toBeUndefined()
})

test('a cold server that was empty before a restart is deleted at once', async () => {
  await using it = await fleet({ warm: false, server: {} })
  await it.storeFirst()
  expect(await it.reconcile()).toEqual({ result: 'settled', reason: 'ServerRetired' })
  expect(await it.isRetired()).toBe(true)
})

test.each([
  { does: 'of a warm motor', traits: { warm: true, server: {} } },
  { does: 'that an administrator created', traits: { warm: false, server: { metadata: { name: 'by-hand-1' } } } },
])('an empty server $does stays', async ({ traits }) => {
  await using it = await fleet(traits)
  await it.storeFirst()
  expect(await it.reconcile()).toEqual({ result: 'settled', reason: 'Enough' })
  expect(await it.isRetired()).toBe(false)
})

test('a cold server stays while an instance waits for its motor', async () => {
  await using it = await fleet({ warm: false, server: {} })
  await it.storeFirst()
  it.instances.put(sharedInstance())
  expect(await it.reconcile()).toEqual({ result: 'settled', reason: 'Enough' })
  expect(await it.isRetired()).toBe(false)
})
