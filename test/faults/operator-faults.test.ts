import { afterAll, beforeAll, expect, test } from 'vitest'
import { keyOf } from '../../store/port.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { conditionOf, isReady } from '../../store/conditions.ts'
import { createConflictingStore } from '../support/store/temporary-store.ts'
import { type RunningOperator, startOperator } from '../support/operator/operator.ts'
import { startPostgres, type ThrowAwayPostgres } from '../support/postgresql/postgres.ts'
import { postgresqlAdmin } from '../../operator/engines/postgresql/postgresql.ts'
import { LATER } from '../support/patience.ts'

let server: ThrowAwayPostgres
beforeAll(async () => {
  server = await startPostgres('15')
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
})

/** Names of the databases and logins of tenants. */
async function tenants(): Promise<readonly string[]> {
  await using admin = postgresqlAdmin(server.target)
  return [...(await admin.catalog()).tenants.keys()]
}

async function ready(operator: RunningOperator, name: string): Promise<SharedInstance> {
  await operator.untilInstance(name, (seen) => seen !== undefined && isReady(seen))
  const instance = operator.instances.get({ namespace: 'acme--prod', name })
  if (!instance) throw new Error(`${name} is gone`)
  return instance
}

const isGone = (seen: SharedInstance | undefined): boolean => seen === undefined
const reasonOf = (seen: SharedInstance | undefined) => seen && conditionOf(seen, 'Ready')?.reason

test('a conflict on every write of a claim, a rotation, a reset, a switch and a deletion only delays them', async () => {
  const seen = { conflicts: new Set<string>() as ReadonlySet<string> }
  await using operator = await startOperator({
    target: server.target,
    wrap(store) {
      const conflicting = createConflictingStore(store)
      seen.conflicts = conflicting.conflicts
      return conflicting.store
    },
  })
  const instance = await operator.create('a')
  const { status } = await ready(operator, 'a')
  expect(await tenants()).toEqual([status?.name])
  await server.client(await operator.credentialsOf('a'))

  await operator.store.mergePatch(SharedInstance, keyOf(instance), { spec: { passwordVersion: 2, resetVersion: 1 } })
  await operator.untilInstance('a', (now) => now?.status?.passwordVersion === 2 && now.status.resetVersion === 1)
  await server.client(await operator.credentialsOf('a'))
  await operator.store.mergePatch(SharedInstance, keyOf(instance), { spec: { enabled: false } })
  await operator.untilInstance('a', (now) => reasonOf(now) === 'Disabled')

  await operator.store.delete(SharedInstance, keyOf(instance))
  await operator.untilInstance('a', isGone)
  expect(await tenants()).toEqual([])
  expect([...seen.conflicts].filter((write) => write.includes('acme--prod/a')).toSorted()).toEqual([
    'create Secret acme--prod/a-credentials',
    'delete Secret acme--prod/a-credentials',
    'mergePatch Secret acme--prod/a-credentials',
    'mergePatch SharedInstance acme--prod/a',
    'patchStatus SharedInstance acme--prod/a',
  ])
})

test('an instance that waits for a slot gets the slot of a deleted one', async () => {
  // The next server never comes up: there is only the first.
  await using operator = await startOperator({ target: server.target, settings: { capacityOf: () => 1 } })
  const first = await operator.create('first')
  await ready(operator, 'first')
  const second = await operator.create('second')
  await operator.untilInstance('second', (now) => reasonOf(now) === 'WaitingForServer')
  await operator.store.delete(SharedInstance, keyOf(first))
  await ready(operator, 'second')
  await operator.store.delete(SharedInstance, keyOf(second))
  await operator.untilInstance('second', isGone)
})

test('an expired instance is deleted with database and login', async () => {
  await using operator = await startOperator({ target: server.target })
  const brief = await operator.create('brief')
  const { status } = await ready(operator, 'brief')
  expect(await tenants()).toEqual([status?.name])
  await operator.store.mergePatch(SharedInstance, keyOf(brief), { spec: { expiresAt: new Date().toISOString() } })
  await operator.untilInstance('brief', isGone)
  expect(await tenants()).toEqual([])
})

test('the sweeper drops a database that has no resource', async () => {
  await using admin = postgresqlAdmin(server.target)
  await admin.claim({ name: 'orphanaaaabbbbcc22', password: 'password-of-an-orphan' }, { connections: 1 }, {})
  await using operator = await startOperator({
    target: server.target,
    settings: { every: { sessionsMs: 60_000, sweepMs: 100 } },
  })
  await operator.create('a')
  const { status } = await ready(operator, 'a')
  await expect.poll(tenants, LATER).toEqual([status?.name])
  await admin.drop(status?.name ?? '')
})

test('an instance whose database was dropped by hand reports it, and a reset creates an empty one', async () => {
  await using operator = await startOperator({
    target: server.target,
    settings: { every: { sessionsMs: 60_000, sweepMs: 100 } },
  })
  const instance = await operator.create('lost')
  const { status } = await ready(operator, 'lost')
  const admin = await server.client()
  await admin.query(`DROP DATABASE "${status?.name ?? ''}" WITH (FORCE)`)
  await operator.untilInstance('lost', (now) => reasonOf(now) === 'DatabaseMissing')

  await operator.store.mergePatch(SharedInstance, keyOf(instance), { spec: { resetVersion: 1 } })
  await ready(operator, 'lost')
  await server.client(await operator.credentialsOf('lost'))
})
