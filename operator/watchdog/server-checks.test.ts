import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import { conditionOf } from '../../store/conditions.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { keyOf } from '../../store/port.ts'
import { databaseServer } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { createTransactionIdAlarm } from './server-checks.ts'

test('a server that has used half of its transaction ids has a condition until enough are free again', async () => {
  await using opened = await openTemporaryStore()
  const { store } = opened
  const { metadata, spec } = databaseServer()
  await store.create(Namespace, { metadata: { name: SHARED_NAMESPACE } })
  const made = await store.create(DatabaseServer, { metadata: { namespace: SHARED_NAMESPACE, name: metadata.name }, spec })
  const servers = settableCache(DatabaseServer, {})
  servers.put(made)
  const registry = new Registry()
  const alarm = createTransactionIdAlarm({ store, servers: servers.cache, registry, now: () => new Date() })

  const after = async (used: number): Promise<string | undefined> => {
    await alarm(metadata.name, used)
    const server = await store.get(DatabaseServer, keyOf(made))
    if (!server) throw new Error('the server is gone')
    servers.put(server)
    return conditionOf(server, 'TransactionIdsLow')?.message
  }
  expect(await after(0.49)).toBeUndefined()
  expect(await after(0.53)).toContain('53 % of the transaction ids are used up')
  expect(await after(0.6)).toContain('53 %')
  expect(await after(0.45)).toContain('53 %')
  expect(await after(0.39)).toBeUndefined()
  expect(await registry.metrics()).toContain('mooring_database_transaction_ids_used_ratio 0.39')
})
