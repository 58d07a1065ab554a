import { pino } from 'pino'
import { expect, test } from 'vitest'
import { DatabaseServer } from '../../crds/database-server.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import { Namespace } from '../../crds/core.ts'
import { keyOf, type Store, StoreError } from '../../store/port.ts'
import { REGION_ID } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { databaseIndexes } from './indexes.ts'
import { serverNameOf, serverOf } from './resources.ts'
import { createUnownedServerReconciler, unownedServerWatches } from './unowned-servers.ts'

const KEY = { namespace: 'acme--prod', name: 'orders' }
const SHAPE = { size: { cpu: 1, memoryMiB: 1_024, storageGiB: 10 }, access: { organization: 'acme', isPrivate: false } }

/** Reconciler over a store with a database and its server; the caches are empty until a test sets them. */
async function bench(wrap: (store: Store) => Store = (store) => store) {
  const opened = await openTemporaryStore()
  const { store } = opened
  for (const name of [KEY.namespace, SHARED_NAMESPACE]) await store.create(Namespace, { metadata: { name } })
  const spec = { motor: 'postgresql-15.4.0', region: REGION_ID, plan: 'small' } as const
  const database = await store.create(DedicatedDatabase, { metadata: KEY, spec })
  const databases = settableCache(DedicatedDatabase, databaseIndexes)
  const servers = settableCache(DatabaseServer)
  const deps = { store: wrap(store), databases: databases.cache, servers: servers.cache, log: pino({ level: 'silent' }) }
  const reconcile = createUnownedServerReconciler(deps)
  return {
    ...{ store, database, databases, deps },
    server: await store.create(DatabaseServer, serverOf(database, SHAPE)),
    /** Creates a server like that of the database, with another name or tenancy. */
    another: (name: string, tenancy: DatabaseServer['spec']['tenancy']) => {
      const { metadata, spec } = serverOf(database, SHAPE)
      return store.create(DatabaseServer, { metadata: { ...metadata, name }, spec: { ...spec, tenancy } })
    },
    /** Reconciles a server that the cache shows. @returns whether the server is being deleted afterwards */
    async isDeleted(server: DatabaseServer): Promise<boolean> {
      servers.put(server)
      await reconcile(keyOf(server))
      const now = await store.get(DatabaseServer, keyOf(server))
      return now?.metadata.deletionTimestamp !== undefined
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

test('a dedicated server whose database is gone is deleted', async () => {
  await using it = await bench()
  await it.store.delete(DedicatedDatabase, KEY)
  expect(await it.isDeleted(it.server)).toBe(true)
})

test('a dedicated server stays while the store has its database, even when the cache lacks the database', async () => {
  await using it = await bench()
  expect(await it.isDeleted(it.server)).toBe(false)
})

test('a dedicated server is deleted when another database took the name of its database', async () => {
  await using it = await bench()
  await it.store.delete(DedicatedDatabase, KEY)
  it.databases.put(await it.store.create(DedicatedDatabase, { metadata: KEY, spec: it.database.spec }))
  expect(await it.isDeleted(it.server)).toBe(true)
})

test('a dedicated server stays when the list of databases fails', async () => {
  const list = () => Promise.reject(new StoreError('unavailable', 'no list'))
  await using it = await bench((store) => ({ ...store, list }))
  await it.store.delete(DedicatedDatabase, KEY)
  await expect(it.isDeleted(it.server)).rejects.toMatchObject({ code: 'unavailable' })
  expect((await it.store.get(DatabaseServer, keyOf(it.server)))?.metadata.deletionTimestamp).toBeUndefined()
})

test('a later server of the same name stays', async () => {
  await using it = await bench()
  await it.store.delete(DedicatedDatabase, KEY)
  const former = { ...it.server, metadata: { ...it.server.metadata, uid: 'former' } }
  await expect(it.isDeleted(former)).rejects.toMatchObject({ code: 'conflict' })
  expect((await it.store.get(DatabaseServer, keyOf(it.server)))?.metadata.deletionTimestamp).toBeUndefined()
})

test.each([
  ['dedicated-abcdefghij', 'shared'],
  ['dedicated-abcdefghij', 'internal'],
  ['dedicated-by-hand', 'dedicated'],
  ['a-dedicated-abcdefghij', 'dedicated'],
] as const)('the server %s of tenancy %s stays without a database', async (name, tenancy) => {
  await using it = await bench()
  expect(await it.isDeleted(await it.another(name, tenancy))).toBe(false)
})

test('the deletion of a database wakes the servers without a database, and no other', async () => {
  await using it = await bench()
  const [going, staying] = [it.server, await it.another(serverNameOf('another uid'), 'dedicated')]
  const servers = settableCache(DatabaseServer)
  servers.put(going, staying)
  it.databases.put(it.database)
  it.databases.put({ ...it.database, metadata: { ...it.database.metadata, name: 'another', uid: 'another uid' } })
  const listeners = new Set<(key: typeof KEY) => void>()
  const onChange = (listener: (key: typeof KEY) => void) => (listeners.add(listener), () => void listeners.delete(listener))
  const databases = { ...it.databases.cache, onChange } as typeof it.databases.cache
  const woken: string[] = []
  const sources = unownedServerWatches({ servers: servers.cache, databases })
  for (const source of sources) source.subscribe(({ name }) => woken.push(name))
  it.databases.remove(it.database)
  for (const listener of listeners) listener(KEY)
  expect(woken).toEqual([going.metadata.name])
})
