import { expect, test, vi } from 'vitest'
import { Namespace, Secret } from '../../crds/core.ts'
import { DatabaseArchive } from '../../crds/database-archive.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { annotations, FINALIZER, labels, SHARED_NAMESPACE } from '../../crds/names.ts'
import { Plan } from '../../crds/plan.ts'
import { Region } from '../../crds/region.ts'
import { MooringError } from '../../shared/errors.ts'
import { conditionOf } from '../../store/conditions.ts'
import { keyOf } from '../../store/port.ts'
import { namedPlan, plan } from '../../test/builders/dedicated.ts'
import { readyCondition, region, REGION_ID } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { type EngineAdmin, EngineCode } from '../engines/engine.ts'
import { postgresql } from '../engines/postgresql/postgresql.ts'
import { createReporter } from '../reporter.ts'
import { createAdmins } from '../server/admins.ts'
import { createSuspicions } from '../shared-instance/slots.ts'
import { databaseIndexes } from './indexes.ts'
import { createDatabaseReconciler } from './reconciler.ts'
import { serverKeyOf } from './resources.ts'

const KEY = { namespace: 'acme--prod', name: 'orders' }
const LARGE = namedPlan('large', { cpu: 8, memoryMiB: 65_536, storageGiB: 500 })
const NOW = new Date('2026-01-02T03:05:00Z')
const TENANT = { [labels.organization]: 'acme', [labels.namespace]: 'prod' }

/** Reconciler with a real store, and with an engine that fails each step for which `failing` returns true. */
async function bench({
  failing = () => false,
  isLeader = () => true,
  labels: own = TENANT,
  ...usage
}: Partial<BenchTraits> = {}) {
  const opened = await openTemporaryStore()
  const { store } = opened
  const namespace = await store.create(Namespace, { metadata: { name: KEY.namespace, labels: own } })
  await store.create(Namespace, { metadata: { name: SHARED_NAMESPACE } })
  const made = await store.create(DedicatedDatabase, {
    metadata: KEY,
    spec: { motor: 'postgresql-15.4.0', region: REGION_ID, plan: 'small', firewallRules: [{ cidr: '192.0.2.0/24' }] },
  })
  const caches = {
    databases: settableCache(DedicatedDatabase, databaseIndexes),
    servers: settableCache(DatabaseServer),
    regions: settableCache(Region),
    plans: settableCache(Plan),
    namespaces: settableCache(Namespace),
    archives: settableCache(DatabaseArchive),
  }
  caches.regions.put(region())
  caches.plans.put(plan(), LARGE, namedPlan('twin'), namedPlan('middle', { storageGiB: 50 }))
  caches.namespaces.put(namespace)
  const step = (name: string) =>
    vi.fn<(...args: readonly unknown[]) => Promise<void>>(async () => {
      if (failing(name)) throw new MooringError(EngineCode.failed, `no ${name}`)
      return Promise.resolve()
    })
  const events: string[] = []
  const admin = {
    ...{ claim: step('claim'), admit: step('admit'), verify: step('verify'), setPassword: step('password') },
    installExtensions: vi.fn<EngineAdmin['installExtensions']>((_name, installed) => Promise.resolve({ installed, refused: [] })),
  }
  const reconcile = createDatabaseReconciler({
    ...{ store, databases: caches.databases.cache, servers: caches.servers.cache, regions: caches.regions.cache },
    archives: caches.archives.cache,
    ...{ plans: caches.plans.cache, namespaces: caches.namespaces.cache, suspicions: createSuspicions() },
    admins: { ...createAdmins(), get: () => ({ engine: postgresql, admin: admin as unknown as EngineAdmin }) },
    quota: { admit: () => undefined },
    ...{ report: createReporter({ store, now: () => NOW }), now: () => NOW },
    ...{ ca: () => '', caFile: 'ca.crt', mayAct: isLeader, ...usage },
    events: { failure: ({ reason }) => void events.push(reason) },
  })
  const serverKey = serverKeyOf(made)
  return {
    ...{ store, admin, serverKey, events },
    /** Reconciles once, with caches that show the store, except servers that are `stale`. */
    async once({ servers = 'present' }: { readonly servers?: 'present' | 'stale' } = {}) {
      const { items } = await store.list(DedicatedDatabase)
      caches.databases.put(...items)
      if (servers === 'present') caches.servers.put(...(await store.list(DatabaseServer)).items)
      return reconcile(keyOf(made))
    },
    /** Reports the server as running with its present spec. */
    async serverRuns() {
      const conditions = [readyCondition('True', 'Running')]
      const server = await store.get(DatabaseServer, serverKey)
      const observedGeneration = server?.metadata.generation
      await store.patchStatus(DatabaseServer, serverKey, { observedGeneration, host: '127.0.0.1', port: 5432, conditions })
    },
    database: async () => (await store.get(DedicatedDatabase, KEY)) ?? expect.fail('the database is gone'),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

interface BenchTraits {
  /** Labels of the Namespace. Default: those of a tenant. */
  readonly labels: Readonly<Record<string, string>>
  /** Whether the engine rejects a step. */
  readonly failing: (step: string) => boolean
  readonly isLeader: () => boolean
  readonly finishUsage: (database: DedicatedDatabase) => Promise<void>
  readonly usageRecordedUntil: () => Promise<number>
}

test('a database gets a finalizer and a server, then a Secret, a login and its rules', async () => {
  await using it = await bench()
  expect(await it.once()).toMatchObject({ result: 'waiting', reason: 'StartingServer' })
  expect((await it.database()).metadata.finalizers).toEqual([FINALIZER])
  const server = await it.store.get(DatabaseServer, it.serverKey)
  expect(server?.spec).toMatchObject({ size: { memoryMiB: 1_024 }, access: { organization: 'acme', sources: ['192.0.2.0/24'] } })
  await it.serverRuns()
  expect(await it.once()).toMatchObject({ result: 'settled', reason: 'Running' })
  const { status } = await it.database()
  expect(status).toMatchObject({ phase: 'running', plan: 'small', storageGiB: 10, host: '127.0.0.1', passwordVersion: 1 })
  expect(it.admin.claim).toHaveBeenCalledWith(expect.objectContaining({ name: status?.name }), { connections: 128 }, {})
  expect(it.admin.admit).toHaveBeenCalledWith(['192.0.2.0/24'])
  await it.once()
  expect(it.admin.claim).toHaveBeenCalledTimes(1)
  expect(it.events).toEqual([])
})

test('a Namespace with the label of an organization alone is no tenant’s, so that it gets no server', async () => {
  await using it = await bench({ labels: { [labels.organization]: 'acme' } })
  expect(await it.once()).toMatchObject({ result: 'waiting', reason: 'NoAccess' })
  expect(conditionOf(await it.database(), 'Ready')?.message).toMatch(
    /^its Namespace acme--prod has no label mooring\.dev\/namespace=prod$/,
  )
  expect(await it.store.get(DatabaseServer, it.serverKey)).toBeUndefined()
})

test('a Secret that was deleted by hand comes back with a new password, and an Event says so', async () => {
  await using it = await bench()
  await it.once()
  await it.serverRuns()
  await it.once()
  await it.store.delete(Secret, { ...KEY, name: 'orders-credentials' })
  await it.once()
  expect(it.admin.setPassword).toHaveBeenCalledTimes(1)
  expect(it.events).toEqual(['PasswordReplaced'])
})

test.each(['claim', 'admit', 'verify'])('after a failure of %s the creation is repeated with the same password', async (step) => {
  let isFailing = true
  await using it = await bench({ failing: (name) => isFailing && name === step })
  await it.once()
  await it.serverRuns()
  await expect(it.once()).rejects.toMatchObject({ code: EngineCode.failed })
  const before = await it.database()
  expect(before.status).toMatchObject({ phase: 'provisioning' })
  expect(conditionOf(before, 'Ready')).toMatchObject({ reason: 'CreatingDatabase', message: `no ${step}` })
  const secret = await it.store.get(Secret, { ...KEY, name: 'orders-credentials' })
  isFailing = false
  await it.once()
  expect((await it.database()).status?.phase).toBe('running')
  expect(await it.store.get(Secret, { ...KEY, name: 'orders-credentials' })).toEqual(secret)
})

test('a process that is not leader any more touches neither the engine nor the status', async () => {
  let isLeader = true
  await using it = await bench({ isLeader: () => isLeader })
  await it.once()
  await it.serverRuns()
  isLeader = false
  const before = await it.database()
  await expect(it.once()).rejects.toMatchObject({ code: EngineCode.unavailable })
  expect(it.admin.claim).not.toHaveBeenCalled()
  expect(await it.database()).toEqual(before)
})

test('a deleted database stays until its server is gone', async () => {
  await using it = await bench()
  await it.once()
  await it.serverRuns()
  await it.once()
  await it.store.delete(DedicatedDatabase, KEY)
  expect(await it.once()).toMatchObject({ result: 'waiting', reason: 'Deleting' })
  expect((await it.database()).status?.phase).toBe('deleting')
  expect((await it.store.get(DatabaseServer, it.serverKey))?.metadata.deletionTimestamp).toBeDefined()
  await it.once()
  await it.store.mergePatch(DatabaseServer, it.serverKey, { metadata: { finalizers: [] } })
  expect(await it.once()).toMatchObject({ result: 'settled' })
  expect(await it.store.get(DedicatedDatabase, KEY)).toBeUndefined()
  expect(await it.store.get(Secret, { ...KEY, name: 'orders-credentials' })).toBeUndefined()
})

test('a deletion waits until its usage is recorded, and says so, unless it is forced', async () => {
  const finishUsage = () => Promise.reject(new MooringError('journal_away', 'no journal'))
  await using it = await bench({ finishUsage })
  await it.once()
  await it.serverRuns()
  await it.once()
  expect((await it.database()).status?.usagePeriods).toMatchObject([{ plan: 'small', storageGiB: 10 }])
  await it.store.delete(DedicatedDatabase, KEY)
  await it.once()
  await it.once()
  await it.store.mergePatch(DatabaseServer, it.serverKey, { metadata: { finalizers: [] } })
  await expect(it.once()).rejects.toMatchObject({ code: 'usage_unrecorded' })
  const held = await it.database()
  expect(held.status?.phase).toBe('deleting')
  expect(conditionOf(held, 'Ready')?.message).toBe('its usage could not be recorded; it is tried again')
  await it.store.mergePatch(DedicatedDatabase, KEY, { metadata: { annotations: { [annotations.forceDelete]: 'true' } } })
  expect(await it.once()).toMatchObject({ result: 'settled' })
  expect(await it.store.get(DedicatedDatabase, KEY)).toBeUndefined()
})

test('an empty list of rules of a former version is removed, and one that was requested since then is kept', async () => {
  await using it = await running()
  const rules = async () => {
    await it.once()
    const { sources } = (await it.store.get(DatabaseServer, it.serverKey))?.spec.access ?? {}
    return { spec: (await it.database()).spec.firewallRules, sources }
  }
  await it.store.mergePatch(DedicatedDatabase, KEY, { spec: { firewallRules: [] } })
  expect(await rules()).toEqual({ spec: [], sources: [] })
  await it.store.patchStatus(DedicatedDatabase, KEY, { rulesVersion: null })
  expect(await rules()).toEqual({ spec: undefined, sources: undefined })
  await it.store.mergePatch(DedicatedDatabase, KEY, { spec: { firewallRules: [] } })
  expect(await rules()).toEqual({ spec: [], sources: [] })
})

test('extensions are installed as far as the Region allows them, and a condition names the others until they are not wanted', async () => {
  await using it = await running()
  const change = async (spec: object) => {
    await it.store.mergePatch(DedicatedDatabase, KEY, { spec })
    expect(await it.once()).toMatchObject({ result: 'settled', reason: 'Running' })
    const database = await it.database()
    const { extensions, extensionsVersion } = database.status ?? {}
    const { reason, message } = conditionOf(database, 'ExtensionsInstalled') ?? {}
    return { extensions, extensionsVersion, reason, message }
  }
  expect(await change({ extensions: ['citext', 'postgis'], extensionsVersion: 1 })).toEqual({
    ...{ extensions: ['citext'], extensionsVersion: 1, reason: 'ExtensionUnsupported' },
    message: 'the extension postgis is not one that the Region allows for postgresql-15.4.0',
  })
  expect(it.admin.installExtensions).toHaveBeenLastCalledWith((await it.database()).status?.name, ['citext'])
  expect(await change({ extensions: ['citext'] })).toMatchObject({ extensions: ['citext'], reason: undefined })
  await it.once()
  expect(it.admin.installExtensions).toHaveBeenCalledTimes(1)
})

/** Returns a bench whose database runs with the plan `small`. */
async function running(traits: Partial<BenchTraits> = {}) {
  const it = await bench(traits)
  await it.once()
  await it.serverRuns()
  await it.once()
  const toPlan = async (name: string) => {
    await it.store.mergePatch(DedicatedDatabase, KEY, { spec: { plan: name } })
    return it.once()
  }
  const periods = async () => (await it.database()).status?.usagePeriods?.map((period) => `${period.plan} ${period.storageGiB}`)
  const reason = async () => conditionOf(await it.database(), 'Ready')?.reason
  return { ...it, toPlan, periods, reason }
}

test.each([
  { next: 'small', reason: 'StorageShrinks' },
  { next: 'none', reason: 'UnknownPlan' },
])('a server that was resized for a moment counts as large after the plan $next', async ({ next, reason }) => {
  await using it = await running()
  await it.toPlan('large')
  await it.serverRuns()
  await it.toPlan(next)
  await it.once()
  expect(await it.reason()).toBe(reason)
  expect(await it.periods()).toEqual(['small 10', 'large 500'])
})

test.each(['small', 'middle'])(
  'a server that was resized before its cache shows it stays large after the plan %s',
  async (next) => {
    await using it = await running()
    await it.toPlan('large')
    await it.store.mergePatch(DedicatedDatabase, KEY, { spec: { plan: next } })
    await it.once({ servers: 'stale' }).catch((error: unknown) => {
      expect(error).toMatchObject({ code: 'conflict' })
    })
    await it.once()
    expect(await it.reason()).toBe('StorageShrinks')
    expect((await it.store.get(DatabaseServer, it.serverKey))?.spec.size?.storageGiB).toBe(500)
    expect((await it.periods())?.at(-1)).toBe('large 500')
  },
)

test('a plan whose storage cannot be had counts with the size of the server, and so does the former plan after it', async () => {
  await using it = await running()
  await it.toPlan('large')
  const held = { ...readyCondition('True', 'StorageNotExpandable'), type: 'UpdateHeld' }
  await it.store.patchStatus(DatabaseServer, it.serverKey, { conditions: [readyCondition('True', 'Running'), held] })
  await it.once()
  expect(await it.reason()).toBe('StorageNotExpandable')
  expect(await it.periods()).toEqual(['small 10', 'large 500'])
  await it.toPlan('small')
  expect(await it.periods()).toEqual(['small 10', 'large 500', 'small 10'])
})

test('a plan counts while a foreign Secret prevents the change', async () => {
  await using it = await running()
  const secret = { ...KEY, name: 'orders-credentials' }
  await it.store.delete(Secret, secret)
  await it.store.create(Secret, { metadata: secret, type: 'Opaque', data: {} })
  await it.toPlan('large')
  await it.serverRuns()
  await it.once()
  expect(await it.reason()).toBe('SecretTaken')
  expect(await it.periods()).toEqual(['small 10', 'large 500'])
})

test('a plan of equal size counts although the engine rejects each step', async () => {
  let isFailing = false
  await using it = await running({ failing: () => isFailing })
  isFailing = true
  await expect(it.toPlan('twin')).rejects.toMatchObject({ code: EngineCode.failed })
  expect((await it.database()).status).toMatchObject({ phase: 'failed', plan: 'small' })
  expect(await it.periods()).toEqual(['small 10', 'twin 10'])
})

test('a larger size counts before the server gets it', async () => {
  await using it = await running()
  await it.store.mergePatch(DedicatedDatabase, KEY, { spec: { plan: 'large' } })
  vi.spyOn(it.store, 'mergePatch').mockRejectedValueOnce(new MooringError('crash', 'the process ends'))
  await expect(it.once()).rejects.toMatchObject({ code: 'crash' })
  expect((await it.store.get(DatabaseServer, it.serverKey))?.spec.size?.storageGiB).toBe(10)
  expect(await it.periods()).toEqual(['small 10', 'large 500'])
})

test('a change of plan waits, and says so, while it would drop a period that is not recorded', async () => {
  let recordedUntil = 0
  await using it = await running({ usageRecordedUntil: () => Promise.resolve(recordedUntil) })
  const from = NOW.toISOString()
  const usagePeriods = Array.from({ length: 100 }, (_, index) => ({ from, plan: 'small', storageGiB: 109 - index }))
  await it.store.patchStatus(DedicatedDatabase, KEY, { usagePeriods })
  await expect(it.toPlan('large')).rejects.toMatchObject({ code: 'usage_full' })
  expect((await it.store.get(DatabaseServer, it.serverKey))?.spec.size?.storageGiB).toBe(10)
  expect(conditionOf(await it.database(), 'Ready')?.message).toMatch(
    /^the plan was changed 100 times since the last recorded hour/,
  )
  recordedUntil = NOW.getTime() + 3_600_000
  await it.once()
  expect((await it.store.get(DatabaseServer, it.serverKey))?.spec.size?.storageGiB).toBe(500)
  expect((await it.periods())?.at(-1)).toBe('large 500')
})
