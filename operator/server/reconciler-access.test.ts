import { expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { DatabaseServer, UPDATE_HELD } from '../../crds/database-server.ts'
import { FINALIZER, SHARED_NAMESPACE } from '../../crds/names.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { MooringError } from '../../shared/errors.ts'
import { keyOf } from '../../store/port.ts'
import { REGION_ID } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import type { EngineAdmin } from '../engines/engine.ts'
import { postgresql } from '../engines/postgresql/postgresql.ts'
import { instanceIndexes } from '../shared-instance/indexes.ts'
import type { Admins, OpenServer } from './admins.ts'
import { createServerReconciler } from './reconciler.ts'
import type { ServerRuntime, ServerState } from './runtime.ts'

const AT = { host: 'outside', port: 5432 }
const RUNNING: ServerState = { phase: 'running', ...AT, internalHost: 'inside', admin: AT }
const ACCESS = { organization: 'acme', isPrivate: false, sources: ['192.0.2.0/24'] }

/** Dedicated server that runs, in a real store, and an admin that records its calls. */
async function bench(access: typeof ACCESS | undefined) {
  const { store, ...temporary } = await openTemporaryStore()
  await store.create(Namespace, { metadata: { name: SHARED_NAMESPACE } })
  const made = await store.create(DatabaseServer, {
    metadata: { namespace: SHARED_NAMESPACE, name: 'one', finalizers: [FINALIZER] },
    spec: { motor: 'postgresql-15.4.0', region: REGION_ID, tenancy: 'dedicated', capacity: 1, access },
  })
  const key = keyOf(made)
  const [servers, instances] = [settableCache(DatabaseServer), settableCache(SharedInstance, instanceIndexes)]
  const calls: unknown[] = []
  const engine: { failure: string | undefined; open: OpenServer | undefined } = { failure: undefined, open: undefined }
  const exporter: { password: string | undefined; logins: unknown[]; failure?: string } = { password: undefined, logins: [] }
  const admin = {
    harden: () => Promise.resolve(),
    version: () => Promise.resolve('15.4'),
    extensions: () => Promise.resolve([]),
    async admit(sources) {
      calls.push(sources)
      if (engine.failure !== undefined) throw new MooringError(engine.failure, 'not yet')
    },
    async monitor(password) {
      if (exporter.failure !== undefined) throw new MooringError(exporter.failure, 'not yet')
      exporter.logins.push(password)
    },
  } as Partial<EngineAdmin> as EngineAdmin
  const admins: Admins = {
    get: () => engine.open,
    names: () => [],
    onOpen: () => () => undefined,
    firstOpen: Promise.resolve(),
    open() {
      const fresh = engine.open === undefined
      engine.open ??= { engine: postgresql, admin }
      return { opened: engine.open, fresh }
    },
    async forget() {
      engine.open = undefined
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
  const runtime: ServerRuntime = {
    motors: () => Promise.resolve(new Map()),
    ensure: () => Promise.resolve({ ...RUNNING, exporterPassword: exporter.password }),
    remove: () => Promise.resolve(true),
    restart: () => Promise.resolve(),
    onChange: () => undefined,
    close: () => Promise.resolve(),
  }
  const now = () => new Date('2026-01-01T00:00:00Z')
  const reconcile = createServerReconciler({
    ...{ store, servers: servers.cache, instances: instances.cache, runtime, admins, now },
  })
  return {
    ...{ calls, engine, exporter },
    async reconcile() {
      const server = await store.get(DatabaseServer, key)
      if (server) servers.put(server)
      return reconcile(key)
    },
    change: (changed: object) => store.mergePatch(DatabaseServer, key, { spec: { access: changed } }),
    status: async () => (await store.get(DatabaseServer, key))?.status,
    [Symbol.asyncDispose]: () => temporary[Symbol.asyncDispose](),
  }
}

test('access is applied before a server is announced, and again only after a change or on a new connection', async () => {
  await using it = await bench(ACCESS)
  await it.reconcile()
  await it.reconcile()
  expect(it.calls).toEqual([['192.0.2.0/24']])
  expect(await it.status()).toMatchObject({ host: 'outside', internalHost: 'inside', observedGeneration: 1 })
  await it.change({ sources: [] })
  await it.reconcile()
  expect(it.calls).toEqual([['192.0.2.0/24'], []])
  it.engine.open = undefined
  await it.reconcile()
  expect(it.calls).toEqual([['192.0.2.0/24'], [], []])
})

test('a private server admits no source outside', async () => {
  await using it = await bench({ ...ACCESS, isPrivate: true })
  await it.reconcile()
  expect(it.calls).toEqual([[]])
})

test('a generation is reported only once its access is in force', async () => {
  await using it = await bench(ACCESS)
  await it.reconcile()
  await it.change({ sources: ['198.51.100.0/24'] })
  it.engine.failure = 'engine_unavailable'
  expect(await it.reconcile()).toMatchObject({ result: 'waiting', reason: 'ApplyingAccess' })
  expect(await it.status()).toMatchObject({ observedGeneration: 1 })
  const held = async () => (await it.status())?.conditions?.find(({ type }) => type === UPDATE_HELD)?.message
  expect(await held()).toBe('the new access rules are not in force yet: not yet')
  it.engine.failure = 'engine_failed'
  await expect(it.reconcile()).rejects.toMatchObject({ code: 'engine_failed' })
  it.engine.failure = undefined
  expect(await it.reconcile()).toMatchObject({ result: 'settled' })
  expect(await it.status()).toMatchObject({ observedGeneration: 2 })
  expect(await held()).toBeUndefined()
})

test('rules that do not come into force are tried again at growing intervals', async () => {
  await using it = await bench(ACCESS)
  it.engine.failure = 'engine_unavailable'
  const intervals: unknown[] = []
  for (let attempt = 1; attempt <= 15; attempt++) intervals.push((await it.reconcile()).requeueAfterMs)
  expect(intervals.slice(0, 10)).toEqual([...Array<number>(8).fill(1_000), 2_000, 4_000])
  expect(intervals.at(-1)).toBe(30_000)
})

test('a dedicated server without access is not restricted', async () => {
  await using it = await bench(undefined)
  await it.reconcile()
  expect(it.calls).toEqual([])
})

test('the address for edges is in the status while the access has edges', async () => {
  await using it = await bench(ACCESS)
  await it.reconcile()
  expect((await it.status())?.edgeAddress).toBeUndefined()
  await it.change({ edges: 'main' })
  await it.reconcile()
  expect((await it.status())?.edgeAddress).toEqual(AT)
  await it.change({ edges: null })
  await it.reconcile()
  expect((await it.status())?.edgeAddress).toBeUndefined()
})

test('the login of an exporter is created once for each connection, and dropped when the server has no exporter', async () => {
  await using it = await bench(ACCESS)
  it.exporter.password = 'secret'
  await it.reconcile()
  await it.reconcile()
  expect(it.exporter.logins).toEqual(['secret'])
  it.engine.open = undefined
  await it.reconcile()
  expect(it.exporter.logins).toEqual(['secret', 'secret'])
  it.exporter.password = undefined
  await it.reconcile()
  await it.reconcile()
  expect(it.exporter.logins).toEqual(['secret', 'secret', undefined])
})

test('a server is ready although the login of its exporter cannot be created yet', async () => {
  await using it = await bench(ACCESS)
  it.exporter.password = 'secret'
  it.exporter.failure = 'engine_unavailable'
  await expect(it.reconcile()).rejects.toThrow('not yet')
  expect((await it.status())?.conditions).toMatchObject([{ type: 'Ready', status: 'True' }])
  delete it.exporter.failure
  await it.reconcile()
  expect(it.exporter.logins).toEqual(['secret'])
})
