import { expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import { Region } from '../../crds/region.ts'
import { isClaimed, SharedInstance } from '../../crds/shared-instance.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { keyOf } from '../../store/port.ts'
import { databaseServer, readyCondition, REGION_ID, sharedInstance } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { createQuota } from '../quota/quota.ts'
import { instanceIndexes } from '../shared-instance/indexes.ts'
import { createSlots } from '../shared-instance/slots.ts'
import { createFleetReconciler } from './reconciler.ts'

const DOWN_AT = Date.parse('2026-01-02T03:04:06Z')

/** Region with one warm motor and one empty server of it, which went down after it had been ready. */
async function fleet() {
  const opened = await openTemporaryStore()
  const { store } = opened
  await store.create(Namespace, { metadata: { name: SHARED_NAMESPACE } })
  const region = await store.create(Region, {
    metadata: { name: 'here' },
    spec: { id: REGION_ID, regionId: 1, name: 'here', motors: [{ id: 'postgresql-15.4.0', warm: true }] },
  })
  const [regions, servers] = [settableCache(Region), settableCache(DatabaseServer)]
  const instances = settableCache(SharedInstance, instanceIndexes)
  regions.put(region)
  const down = { engineVersion: '15.4', conditions: [readyCondition('False', 'Crashed')] }
  servers.put(databaseServer({ spec: { capacity: 50 }, status: down }))
  const clock = { ms: DOWN_AT }
  const reconcile = createFleetReconciler({
    ...{ store, regions: regions.cache, servers: servers.cache, instances: instances.cache, capacity: 50 },
    slots: createSlots({ servers: servers.cache, instances: instances.cache }),
    quota: createQuota({ cache: instances.cache, max: 50, hasBegun: isClaimed }),
    now: () => new Date(clock.ms),
  })
  return {
    ...{ clock, instances, reconcile: () => reconcile(keyOf(region)) },
    made: async () => (await store.list(DatabaseServer)).items.map(({ metadata }) => metadata.name),
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
