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
import { createPoolReconciler } from './reconciler.ts'

const up = databaseServer()
const down = databaseServer({ status: { conditions: [readyCondition('False', 'Crashed')] } })

/** Reconciles the pool of a server with or without an admin connection; `more`: whether the pool has more work. */
async function reconcile(server: DatabaseServer, way: 'open' | 'none', more = false) {
  const [servers, instances] = [settableCache(DatabaseServer), settableCache(SharedInstance, instanceIndexes)]
  servers.put(server)
  const admin: Pick<EngineAdmin, 'tidy'> = { tidy: () => Promise.resolve(more) }
  const admins: Pick<Admins, 'get'> = {
    get: () => (way === 'open' ? { engine: postgresql, admin: admin as EngineAdmin } : undefined),
  }
  const pool = createPoolReconciler({ servers: servers.cache, instances: instances.cache, admins: admins as Admins, size: 2 })
  return pool(keyOf(server))
}

test('a full pool is not reconciled until something changes', async () => {
  expect(await reconcile(up, 'open')).toEqual({ result: 'settled', reason: 'Full' })
})

test('a pool that is not full is reconciled again at once', async () => {
  expect(await reconcile(up, 'open', true)).toMatchObject({ reason: 'Filling', requeueAfterMs: 1 })
})

test('the pool of a server that is down waits for an event', async () => {
  expect(await reconcile(down, 'none')).toEqual({ result: 'waiting', reason: 'ServerNotReady' })
})

test('the pool of a ready server without a connection is tried again after a second', async () => {
  expect(await reconcile(up, 'none')).toEqual({ result: 'waiting', reason: 'ServerNotOpen', requeueAfterMs: 1_000 })
})
