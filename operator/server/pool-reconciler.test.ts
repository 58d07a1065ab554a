import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { DatabaseServer } from '../../crds/database-server.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { keyOf } from '../../store/port.ts'
import { databaseServer, readyCondition } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import type { EngineAdmin } from '../engines/engine.ts'
import { postgresql } from '../engines/postgresql/postgresql.ts'
import { instanceIndexes } from '../shared-instance/indexes.ts'
import type { Admins } from './admins.ts'
import { createDiscarded } from './discarded.ts'
import { createPoolReconciler } from './pool-reconciler.ts'

const up = databaseServer()
const down = databaseServer({ status: { conditions: [readyCondition('False', 'Crashed')] } })

/** Reconciles the pool of a server with or without an admin connection; `more`: whether the pool has more work; `left`: discarded databases. */
async function reconcile(server: DatabaseServer, way: 'open' | 'none', { more = false, left = [] as readonly string[] } = {}) {
  const [servers, instances] = [settableCache(DatabaseServer), settableCache(SharedInstance, instanceIndexes)]
  servers.put(server)
  const sizes: number[] = []
  const admin: Pick<EngineAdmin, 'tidy' | 'discarded'> = {
    async tidy(size) {
      sizes.push(size)
      return more
    },
    discarded: () => Promise.resolve(left),
  }
  const admins: Pick<Admins, 'get'> = {
    get: () => (way === 'open' ? { engine: postgresql, admin: admin as EngineAdmin } : undefined),
  }
  const discarded = createDiscarded({ servers: servers.cache, registry: new Registry() })
  const pool = createPoolReconciler({
    ...{ servers: servers.cache, instances: instances.cache, admins: admins as Admins, discarded, size: 2 },
  })
  const first = await pool(keyOf(server))
  if (left.length > 0) await pool(keyOf(server))
  return { first, sizes }
}

test('a full pool is not reconciled until something changes', async () => {
  expect((await reconcile(up, 'open')).first).toEqual({ result: 'settled', reason: 'Full' })
})

test('a pool that is not full is reconciled again at once', async () => {
  expect((await reconcile(up, 'open', { more: true })).first).toMatchObject({ reason: 'Filling', requeueAfterMs: 1 })
})

test('the pool of a server that is down waits for an event', async () => {
  expect((await reconcile(down, 'none')).first).toEqual({ result: 'waiting', reason: 'ServerNotReady' })
})

test('the pool of a ready server without a connection is tried again after a second', async () => {
  expect((await reconcile(up, 'none')).first).toEqual({ result: 'waiting', reason: 'ServerNotOpen', requeueAfterMs: 1_000 })
})

test('a discarded database that could not be removed takes a slot, and its removal is tried again', async () => {
  const small = databaseServer({ spec: { capacity: 2 } })
  const { first, sizes } = await reconcile(small, 'open', { left: ['a1b2c3d4'] })
  expect(first).toEqual({ result: 'waiting', reason: 'Removing', requeueAfterMs: 5_000 })
  expect(sizes).toEqual([2, 1])
})
