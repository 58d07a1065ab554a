import { afterAll, beforeAll, expect, test } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import type { Kind } from '../../../crds/kind.ts'
import { Region } from '../../../crds/region.ts'
import { isReady } from '../../../store/conditions.ts'
import { openTemporaryStore } from '../../support/store/temporary-store.ts'
import type { Store } from '../../../store/port.ts'
import { type RunningOperator, startOperator } from '../../support/operator/operator.ts'
import { startPostgres, type ThrowAwayPostgres } from '../../support/postgresql/postgres.ts'
import { LATER } from '../../support/patience.ts'

const SWEEP = { every: { sessionsMs: 60_000, sweepMs: 100 } }

let server: ThrowAwayPostgres
beforeAll(async () => {
  server = await startPostgres('15')
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
})

const ready = (operator: RunningOperator, name: string) =>
  operator.untilInstance(name, (now) => now !== undefined && isReady(now))

/** Returns a store that records writes, and counts reads and lists of Secrets. Only the sweeper lists them. */
function counting(store: Store) {
  const writes: string[] = []
  const seen = { sweeps: 0, secretsRead: 0 }
  const counted = new Proxy(store, {
    get(target, property: keyof Store) {
      const method = Reflect.get(target, property) as (kind: Kind, ...rest: unknown[]) => unknown
      return (kind: Kind, ...rest: unknown[]) => {
        if (property === 'list' && kind === Secret) seen.sweeps += 1
        if (property === 'get' && kind === Secret) seen.secretsRead += 1
        if (!['get', 'list', 'watch'].includes(property)) writes.push(`${property} ${kind.kind} ${JSON.stringify(rest)}`)
        return method.call(target, kind, ...rest)
      }
    },
  })
  return { counted, writes, seen }
}

test('an operator that starts with reconciled objects and sweeps writes nothing', async () => {
  await using temporary = await openTemporaryStore()
  const names = ['s-1', 's-2', 's-3', 's-4', 's-5']
  {
    await using former = await startOperator({ target: server.target, settings: SWEEP, over: temporary.store })
    await Promise.all(names.map((name) => former.create(name)))
    await Promise.all(names.map((name) => ready(former, name)))
    const isBound = () => former.caches.tenantNamespaces.list().some(isReady)
    await expect.poll(isBound).toBe(true)
  }
  const { resourceVersion } = await temporary.store.list(Region)
  const { counted, writes, seen } = counting(temporary.store)
  await using next = await startOperator({ target: server.target, settings: SWEEP, over: temporary.store, wrap: () => counted })
  // Each instance was reconciled once, and all Secrets were listed several times.
  await expect.poll(() => seen.secretsRead).toBeGreaterThan(names.length)
  await expect.poll(() => seen.sweeps, LATER).toBeGreaterThan(3)
  expect(next.instances.list().every(isReady)).toBe(true)
  expect(writes).toEqual([])
  expect((await temporary.store.list(Region)).resourceVersion).toBe(resourceVersion)
})
