import { pino } from 'pino'
import { expect, test } from 'vitest'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { claimedStatus, sharedInstance } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import type { Admins } from '../server/admins.ts'
import { instanceIndexes } from '../shared-instance/indexes.ts'
import { tenantName } from '../shared-instance/kept-secret.ts'
import { createSuspicions } from '../shared-instance/slots.ts'
import { createWatchdog } from './watchdog.ts'

const [FULL, LIMIT] = [2_000, 1_000]

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
    ...{ store: opened.store, instances: instances.cache, suspicions, ca: () => '', log: pino({ level: 'silent' }) },
    admins: { names: () => ['s'], get: () => ({ admin }) } as unknown as Admins,
    limits: { statementMs: 1, idleTransactionMs: 1, sizeBytes: LIMIT },
    every: { sessionsMs: 1, sweepMs: 1 },
    onTransactionIds: () => Promise.resolve(),
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
