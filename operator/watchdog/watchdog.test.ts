import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { claimedStatus, sharedInstance } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import type { Failure } from '../events/events.ts'
import type { Admins } from '../server/admins.ts'
import { dedicatedDatabase, runningStatus } from '../../test/builders/dedicated.ts'
import { serverNameOf } from '../dedicated-database/resources.ts'
import { databaseIndexes } from '../dedicated-database/indexes.ts'
import { instanceIndexes } from '../shared-instance/indexes.ts'
import { tenantName } from '../shared-instance/kept-secret.ts'
import { createSuspicions } from '../shared-instance/slots.ts'
import { createWatchdog } from './watchdog.ts'

const [FULL, LIMIT] = [2_000, 1_000]

/** No restarts, and no discarded databases. */
const CALM = { restarts: { request: async () => false }, discarded: { countOn: () => 0 } }

/** One oversized instance; `during` runs while sizes are measured. */
async function lookAt(given: SharedInstance, during: (put: (instance: SharedInstance) => void) => unknown) {
  await using opened = await openTemporaryStore()
  const instances = settableCache(SharedInstance, instanceIndexes)
  instances.put(given)
  const suspicions = createSuspicions()
  const admin = {
    async sizes() {
      during((next) => instances.put({ ...next, metadata: { ...next.metadata, resourceVersion: '8' } }))
      return new Map([[given.status?.name, FULL]])
    },
    guardTransactionIds: async () => 0,
    catalog: async () => ({ tenants: new Map([[given.status?.name, { database: true }]]) }),
  }
  const watchdog = createWatchdog({
    ...{
      store: opened.store,
      instances: instances.cache,
      databases: settableCache(DedicatedDatabase, databaseIndexes).cache,
      suspicions,
      ca: () => '',
      log: pino({ level: 'silent' }),
    },
    events: { failure: () => undefined },
    admins: { names: () => ['s'], get: () => ({ admin }) } as unknown as Admins,
    limits: { statementMs: 1, idleTransactionMs: 1, sizeBytes: LIMIT },
    every: { sessionsMs: 1, sweepMs: 1 },
    onTransactionIds: () => Promise.resolve(),
    onOutOfMemory: () => Promise.resolve(),
    ...CALM,
  })
  await watchdog.sweep()
  return suspicions.oversize.has(given.metadata.uid)
}

function instance(desired: number, done: number): SharedInstance {
  const { metadata } = sharedInstance()
  const status = { ...claimedStatus, name: tenantName('pr-42', metadata.uid), serverRef: { name: 's' }, resetVersion: done }
  return sharedInstance({ spec: { resetVersion: desired }, status })
}

test('an oversized instance is reported, whether it was ever reset or not', async () => {
  expect(await lookAt(instance(0, 0), () => undefined)).toBe(true)
  expect(await lookAt(instance(3, 3), () => undefined)).toBe(true)
})

test('a size measured before or during a reset does not count after it', async () => {
  expect(await lookAt(instance(1, 0), () => undefined)).toBe(false)
  expect(await lookAt(instance(1, 0), (put) => put(instance(1, 1)))).toBe(false)
  expect(await lookAt(instance(0, 0), (put) => put(instance(1, 0)))).toBe(false)
  expect(await lookAt(instance(0, 0), (put) => put(instance(1, 1)))).toBe(false)
})

test.each(['TemplateNotFound', 'TemplateInUse'])('a reset that waits with %s does not prevent a measurement', async (reason) => {
  const waits = instance(1, 0)
  const condition = { type: 'Ready', status: 'False', reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' } as const
  const given = { ...waits, status: { ...waits.status, conditions: [condition] } }
  expect(await lookAt(given, () => undefined)).toBe(true)
  expect(await lookAt(given, (put) => put(instance(1, 1)))).toBe(false)
})

test('a desired reset version below the present one does not prevent a measurement', async () => {
  expect(await lookAt(instance(0, 2), () => undefined)).toBe(true)
})

test('a server without instances gets no statement bounds, and its sessions from excluded sources are ended', async () => {
  await using opened = await openTemporaryStore()
  const entries: object[] = []
  const counts = [0, 2]
  const admin = { endExcluded: async () => counts.shift() ?? 0, enforce: () => Promise.reject(new Error('enforce was called')) }
  const watchdog = createWatchdog({
    ...{ store: opened.store, instances: settableCache(SharedInstance, instanceIndexes).cache },
    ...{ databases: settableCache(DedicatedDatabase, databaseIndexes).cache, suspicions: createSuspicions(), ca: () => '' },
    log: { info: (fields: object) => void entries.push(fields), warn: (fields: object) => void entries.push(fields) },
    events: { failure: () => undefined },
    admins: { names: () => ['s'], get: () => ({ admin }) } as unknown as Admins,
    limits: { statementMs: 1, idleTransactionMs: 1, sizeBytes: LIMIT },
    every: { sessionsMs: 1, sweepMs: 3_600_000 },
    onTransactionIds: () => Promise.resolve(),
    onOutOfMemory: () => Promise.resolve(),
    ...CALM,
  })
  const stop = new AbortController()
  const run = watchdog.run(stop.signal)
  await expect.poll(() => entries.length).toBe(1)
  stop.abort()
  await run
  expect(entries).toEqual([{ server: 's', ended: 2 }])
})

test('a dedicated database whose user dropped an extension is reconciled', async () => {
  await using opened = await openTemporaryStore()
  const database = dedicatedDatabase({ status: { ...runningStatus, extensions: ['citext'] } })
  const databases = settableCache(DedicatedDatabase, databaseIndexes)
  databases.put(database)
  const seen: unknown[] = []
  const findChangedExtensions = async (recorded: ReadonlyMap<string, readonly string[]>) => {
    seen.push(...recorded)
    return [...recorded.keys()]
  }
  const admin = { endExcluded: () => Promise.resolve(0), findChangedExtensions }
  const suspicions = createSuspicions()
  const watchdog = createWatchdog({
    ...{ store: opened.store, instances: settableCache(SharedInstance, instanceIndexes).cache },
    ...{ databases: databases.cache, suspicions, ca: () => '', events: { failure: () => undefined } },
    log: { info: () => undefined, warn: (fields: object) => expect.fail(JSON.stringify(fields)) },
    admins: { names: () => [serverNameOf(database.metadata.uid)], get: () => ({ admin }) } as unknown as Admins,
    limits: { statementMs: 1, idleTransactionMs: 1, sizeBytes: LIMIT },
    every: { sessionsMs: 1, sweepMs: 3_600_000 },
    onTransactionIds: () => Promise.resolve(),
    onOutOfMemory: () => Promise.resolve(),
    ...CALM,
  })
  const woken: string[] = []
  watchdog.onSuspicion(DedicatedDatabase, ({ name }) => void woken.push(name))
  const stop = new AbortController()
  const run = watchdog.run(stop.signal)
  await expect.poll(() => woken[0]).toBe('orders')
  stop.abort()
  await run
  expect(seen[0]).toEqual([runningStatus.name, ['citext']])
  expect(suspicions.extensions.has(database.metadata.uid)).toBe(true)
})

test('a statement that cannot be ended is reported once to its tenant and to the log; a restart is requested while others wait', async () => {
  await using opened = await openTemporaryStore()
  const { metadata } = sharedInstance()
  const name = tenantName('pr-42', metadata.uid)
  const instances = settableCache(SharedInstance, instanceIndexes)
  instances.put(sharedInstance({ status: { ...claimedStatus, name, serverRef: { name: 's' } } }))
  const [failures, warnings, requests]: [Failure[], object[], string[]] = [[], [], []]
  const stuck = { cancelled: 0, ended: 1, suspended: [{ name, cause: 'statement' as const }] }
  const enforced = [{ cancelled: 1, ended: 0 }, stuck, stuck, { ...stuck, needsRestart: true }]
  const admin = {
    ...{ enforce: async () => enforced.shift() ?? { cancelled: 0, ended: 0 }, sizes: async () => new Map() },
    findChangedExtensions: async () => [],
  }
  const watchdog = createWatchdog({
    ...{ store: opened.store, instances: instances.cache, databases: settableCache(DedicatedDatabase, databaseIndexes).cache },
    ...{ suspicions: createSuspicions(), ca: () => '' },
    log: { info: () => undefined, warn: (fields: object) => void warnings.push(fields) },
    events: { failure: (failure) => void failures.push(failure) },
    admins: { names: () => ['s'], get: () => ({ admin }) } as unknown as Admins,
    limits: { statementMs: 300_000, idleTransactionMs: 1, sizeBytes: LIMIT },
    every: { sessionsMs: 1, sweepMs: 3_600_000 },
    onTransactionIds: () => Promise.resolve(),
    onOutOfMemory: () => Promise.resolve(),
    restarts: { request: async (server, culprits) => requests.push(server, ...culprits) > 0 },
    discarded: { countOn: () => 0 },
  })
  const stop = new AbortController()
  const run = watchdog.run(stop.signal)
  await expect.poll(() => requests).toEqual(['s', name])
  stop.abort()
  await run
  expect(failures).toMatchObject([{ kind: SharedInstance, metadata: { uid: metadata.uid }, reason: 'StatementStuck' }])
  expect(failures[0]?.note).toContain('300 s')
  expect(warnings).toEqual([{ server: 's', cause: 'statement', databases: [name] }])
})

test('a sweep reads the store only for databases whose owner is in neither cache', async () => {
  await using opened = await openTemporaryStore()
  const { metadata } = dedicatedDatabase()
  const [owned, unowned] = [tenantName(metadata.name, metadata.uid), tenantName('gone', 'uid of a deleted resource')]
  const databases = settableCache(DedicatedDatabase, databaseIndexes)
  databases.put(dedicatedDatabase())
  const tenants = new Map([[owned, { database: true }]])
  const drop = vi.fn<(name: string) => Promise<void>>(() => Promise.resolve())
  const admin = { guardTransactionIds: async () => 0, catalog: async () => ({ tenants }), drop }
  const list = vi.spyOn(opened.store, 'list')
  const watchdog = createWatchdog({
    ...{ store: opened.store, instances: settableCache(SharedInstance, instanceIndexes).cache, databases: databases.cache },
    ...{ suspicions: createSuspicions(), ca: () => '', log: pino({ level: 'silent' }), events: { failure: () => undefined } },
    admins: { names: () => ['s'], get: () => ({ admin }) } as unknown as Admins,
    limits: { statementMs: 1, idleTransactionMs: 1, sizeBytes: LIMIT },
    every: { sessionsMs: 1, sweepMs: 1 },
    onTransactionIds: () => Promise.resolve(),
    onOutOfMemory: () => Promise.resolve(),
    ...CALM,
  })
  const readKinds = () => list.mock.calls.map(([{ kind }]) => kind).filter((kind) => kind !== 'Secret')
  await watchdog.sweep()
  expect(readKinds()).toEqual([])
  tenants.set(unowned, { database: true })
  await watchdog.sweep()
  await watchdog.sweep()
  expect(readKinds().length).toBeGreaterThan(0)
  expect(drop.mock.calls).toEqual([[unowned]])
})
