import { expect, test } from 'vitest'
import { Namespace, Secret } from '../../crds/core.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { MooringError } from '../../shared/errors.ts'
import { annotations, FINALIZER, SHARED_NAMESPACE } from '../../crds/names.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { conditionOf } from '../../store/conditions.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { keyOf, type Store } from '../../store/port.ts'
import { REGION_ID, sharedInstance } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import type { EngineAdmin } from '../engines/engine.ts'
import { postgresql } from '../engines/postgresql/postgresql.ts'
import { instanceIndexes } from '../shared-instance/indexes.ts'
import { decodeSecret } from '../secret-data.ts'
import type { Admins, OpenServer } from './admins.ts'
import { adminSecretName } from './credentials.ts'
import { createServerReconciler } from './reconciler.ts'
import type { ServerRuntime, ServerState } from './runtime.ts'

const AT = { host: '127.0.0.1', port: 5432 }
const RUNNING: ServerState = { phase: 'running', ...AT, admin: AT }

/** Keeps one admin connection like createAdmins, to an engine with given responses. */
function fakeAdmins() {
  const calls: string[] = []
  const broken: { harden: false | string } = { harden: false }
  const admin = {
    async harden() {
      calls.push('harden')
      if (broken.harden !== false) throw new MooringError(broken.harden, 'it has just gone')
    },
    async version() {
      calls.push('version')
      return '15.4'
    },
    extensions: () => Promise.resolve([{ name: 'citext', version: '1.6' }]),
  } as Partial<EngineAdmin> as EngineAdmin
  let open: OpenServer | undefined
  const admins: Admins = {
    get: () => open,
    names: () => [],
    onOpen: () => () => undefined,
    firstOpen: Promise.resolve(),
    open() {
      const fresh = open === undefined
      open ??= { engine: postgresql, admin }
      return { opened: open, fresh }
    },
    async forget() {
      calls.push('forget')
      open = undefined
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
  return { admins, calls, broken }
}

/** Server in a real store, and a runtime that reports a given state. */
async function bench(traits: Pick<ServerRuntime, 'adoptsPassword'> = {}) {
  const { store, ...temporary } = await openTemporaryStore()
  await store.create(Namespace, { metadata: { name: SHARED_NAMESPACE } })
  const made = await store.create(DatabaseServer, {
    metadata: { namespace: SHARED_NAMESPACE, name: 'one', finalizers: [FINALIZER] },
    spec: { motor: 'postgresql-15.4.0', region: REGION_ID, tenancy: 'shared', capacity: 50 },
  })
  const key = keyOf(made)
  const [servers, instances] = [settableCache(DatabaseServer), settableCache(SharedInstance, instanceIndexes)]
  const seen: { state: ServerState; removed: boolean; isNamespaceGoing: boolean } = {
    ...{ state: { phase: 'starting' }, removed: false, isNamespaceGoing: false },
  }
  const runtime: ServerRuntime = {
    ...traits,
    motors: () => Promise.resolve(new Map()),
    ensure: () => Promise.resolve(seen.state),
    remove: () => Promise.resolve(seen.removed),
    restart: () => Promise.resolve(),
    onChange: () => undefined,
    close: () => Promise.resolve(),
  }
  const fakes = fakeAdmins()
  const now = () => new Date('2026-01-01T00:00:00Z')
  const start = () =>
    createServerReconciler({
      ...{ store, servers: servers.cache, instances: instances.cache, runtime, admins: fakes.admins, now },
      isNamespaceGoing: () => seen.isNamespaceGoing,
    })
  let reconcile = start()
  return {
    ...{ store, key, seen, instances, ...fakes },
    async reconcile() {
      const server = await store.get(DatabaseServer, key)
      if (server) servers.put(server)
      return reconcile(key)
    },
    restart: () => {
      reconcile = start()
    },
    status: async () => (await store.get(DatabaseServer, key))?.status,
    [Symbol.asyncDispose]: () => temporary[Symbol.asyncDispose](),
  }
}

test.each<{ does: string; state: ServerState; result: string; reason: string; ready: string }>([
  {
    does: 'reconciles again while it starts',
    state: { phase: 'starting' },
    result: 'waiting',
    reason: 'Starting',
    ready: 'False',
  },
  {
    does: 'says why it failed',
    state: { phase: 'failed', reason: 'Crashed', message: 'it ended' },
    result: 'waiting',
    reason: 'Crashed',
    ready: 'False',
  },
  { does: 'is settled when it runs', state: RUNNING, result: 'settled', reason: 'Running', ready: 'True' },
])('$does', async ({ state, result, reason, ready }) => {
  await using it = await bench()
  it.seen.state = state
  expect(await it.reconcile()).toMatchObject({ result, reason })
  expect(conditionOf({ status: await it.status() }, 'Ready')).toMatchObject({ status: ready, reason })
})

test('a running server is hardened once, before it is announced', async () => {
  await using it = await bench()
  it.seen.state = RUNNING
  await it.reconcile()
  await it.reconcile()
  expect(it.calls).toEqual(['harden', 'version'])
  expect(await it.status()).toMatchObject({ ...AT, engineVersion: '15.4' })
})

test('a server that could not be hardened is not ready until it is', async () => {
  await using it = await bench()
  it.seen.state = RUNNING
  it.broken.harden = 'engine_unavailable'
  await expect(it.reconcile()).rejects.toMatchObject({ code: 'engine_unavailable' })
  expect(await it.status()).toBeUndefined()
  it.broken.harden = false
  await it.reconcile()
  expect(it.calls).toEqual(['harden', 'forget', 'harden', 'version'])
  expect(conditionOf({ status: await it.status() }, 'Ready')).toMatchObject({ status: 'True' })
})

test('a server that tenants could compromise is not ready, and its status says why', async () => {
  await using it = await bench()
  it.seen.state = RUNNING
  it.broken.harden = 'server_unsafe'
  await it.reconcile()
  expect(conditionOf({ status: await it.status() }, 'Ready')).toMatchObject({ status: 'False', reason: 'Unsafe' })
  it.broken.harden = false
  await it.reconcile()
  expect(conditionOf({ status: await it.status() }, 'Ready')).toMatchObject({ status: 'True' })
  expect((await it.status())?.extensions).toEqual([{ name: 'citext', version: '1.6' }])
})

test('a server that comes back after a crash is hardened again', async () => {
  await using it = await bench()
  for (const state of [RUNNING, { phase: 'failed', reason: 'Crashed', message: 'it ended' } as const, RUNNING]) {
    it.seen.state = state
    await it.reconcile()
  }
  expect(it.calls).toEqual(['harden', 'version', 'forget', 'harden', 'version'])
})

test('the admin password is generated once and deleted with the server', async () => {
  await using it = await bench()
  const secret = { namespace: SHARED_NAMESPACE, name: adminSecretName('one') }
  await it.reconcile()
  const drawn = await it.store.get(Secret, secret)
  await it.reconcile()
  expect(drawn?.metadata.ownerReferences).toMatchObject([{ kind: 'DatabaseServer', name: 'one' }])
  expect(await it.store.get(Secret, secret)).toEqual(drawn)
})

const adminSecret = { namespace: SHARED_NAMESPACE, name: adminSecretName('one') }
const passwordIn = async (store: Store) => decodeSecret((await store.get(Secret, adminSecret))?.data ?? {}, 'password')

test.each([
  { what: 'deleted', damage: (store: Store) => store.delete(Secret, adminSecret) },
  { what: 'emptied', damage: (store: Store) => store.mergePatch(Secret, adminSecret, { data: { password: null } }) },
])('an admin Secret that was $what by hand is restored', async ({ damage }) => {
  await using it = await bench()
  it.seen.state = RUNNING
  await it.reconcile()
  const drawn = await passwordIn(it.store)
  await damage(it.store)
  await it.reconcile()
  expect(await passwordIn(it.store)).toBe(drawn)
})

test('after a restart a lost password of an engine that keeps its own is reported, not replaced', async () => {
  await using it = await bench()
  it.seen.state = RUNNING
  await it.reconcile()
  await it.store.delete(Secret, adminSecret)
  it.restart()
  expect(await it.reconcile()).toMatchObject({ result: 'waiting', reason: 'AdminSecretLost' })
  expect(await it.store.get(Secret, adminSecret)).toBeUndefined()
  expect(conditionOf({ status: await it.status() }, 'Ready')).toMatchObject({ status: 'False', reason: 'AdminSecretLost' })
})

test('after a restart a lost password is replaced for an engine that adopts it', async () => {
  await using it = await bench({ adoptsPassword: true })
  it.seen.state = RUNNING
  await it.reconcile()
  await it.store.delete(Secret, adminSecret)
  it.restart()
  expect(await it.reconcile()).toMatchObject({ result: 'settled', reason: 'Running' })
  expect(await passwordIn(it.store)).toMatch(/^[0-9A-Za-z]{24}$/)
})

test('the finalizer of a deleted server is removed only when nothing of it is left', async () => {
  await using it = await bench()
  await it.store.delete(DatabaseServer, it.key)
  expect(await it.reconcile()).toMatchObject({ result: 'waiting', reason: 'Stopping' })
  expect(await it.store.get(DatabaseServer, it.key)).toBeDefined()
  it.seen.removed = true
  expect(await it.reconcile()).toMatchObject({ result: 'settled' })
  expect(await it.store.get(DatabaseServer, it.key)).toBeUndefined()
})

const tenant = sharedInstance({ status: { serverRef: { name: 'one' } } })

test('a deleted server serves until its last instance is gone, and reports that', async () => {
  await using it = await bench()
  it.seen.state = RUNNING
  it.seen.removed = true
  it.instances.put(tenant)
  await it.reconcile()
  await it.store.delete(DatabaseServer, it.key)
  expect(await it.reconcile()).toMatchObject({ reason: 'Running' })
  expect(conditionOf({ status: await it.status() }, 'Ready')).toMatchObject({ status: 'True' })
  expect(conditionOf({ status: await it.status() }, 'DeletionHeld')).toMatchObject({
    status: 'True',
    reason: 'InstancesLeft',
    message: expect.stringContaining('1 instances') as string,
  })
  it.instances.remove(tenant)
  await it.reconcile()
  expect(await it.store.get(DatabaseServer, it.key)).toBeUndefined()
})

test('a server whose deletion is forced does not wait for its instances', async () => {
  await using it = await bench()
  it.seen.removed = true
  it.instances.put(tenant)
  await it.store.mergePatch(DatabaseServer, it.key, { metadata: { annotations: { [annotations.forceDelete]: 'true' } } })
  await it.store.delete(DatabaseServer, it.key)
  await it.reconcile()
  expect(await it.store.get(DatabaseServer, it.key)).toBeUndefined()
})

test('a server whose Namespace is being deleted waits for neither its instances nor its runtime', async () => {
  await using it = await bench()
  it.seen.isNamespaceGoing = true
  it.instances.put(tenant)
  await it.store.delete(DatabaseServer, it.key)
  await it.reconcile()
  expect(await it.store.get(DatabaseServer, it.key)).toBeUndefined()
  expect(it.calls).toEqual(['forget'])
})
