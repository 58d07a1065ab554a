import { afterAll, beforeAll, expect, test } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import { DatabaseServer } from '../../../crds/database-server.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { conditionOf } from '../../../store/conditions.ts'
import { openTemporaryStore } from '../../support/store/temporary-store.ts'
import { REGION_ID } from '../../builders/resources.ts'
import { type RunningOperator, startOperator } from '../../support/operator/operator.ts'
import { startPostgres, type ThrowAwayPostgres } from '../../support/postgresql/postgres.ts'

const NAMES = Array.from({ length: 8 }, (_, index) => `i${index}`)
const key = (name: string) => ({ namespace: 'acme--prod', name })

let server: ThrowAwayPostgres
let temporary: Awaited<ReturnType<typeof openTemporaryStore>>
beforeAll(async () => {
  server = await startPostgres('15')
  temporary = await openTemporaryStore()
})
afterAll(async () => {
  await temporary[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

/** Starts an operator with a quota, on the store of the previous operator. */
async function start(instances: number) {
  const operator = await startOperator({
    ...{ target: server.target, over: temporary.store },
    settings: { quotas: { instances, databases: 0, tunnels: 0 } },
  })
  return { ...operator, ...viewOf(operator) }
}

function viewOf(operator: RunningOperator) {
  const { store, instances } = operator
  const reasonOf = (instance: SharedInstance | undefined) => instance && conditionOf(instance, 'Ready')?.reason
  const isDecided = (instance: SharedInstance | undefined) => ['Claimed', 'QuotaExceeded'].includes(reasonOf(instance) ?? '')
  return {
    /** Creates an instance as kubectl does. */
    apply: (name: string) =>
      store.create(SharedInstance, {
        metadata: key(name),
        spec: { identifier: name, region: REGION_ID, motor: 'postgresql-15.4.0' },
      }),
    async remove(name: string) {
      await store.delete(SharedInstance, key(name))
      await operator.untilInstance(name, (now) => now === undefined)
    },
    /** Returns the instances with a reason, after all have been reconciled. */
    async withReason(reason: string, among: readonly string[]) {
      await Promise.all(among.map((name) => operator.untilInstance(name, isDecided)))
      return among.filter((name) => reasonOf(instances.get(key(name))) === reason)
    },
  }
}

test('of eight concurrent instances, two within the quota get a database; six report the quota and get nothing', async () => {
  await using operator = await start(2)
  await Promise.all(NAMES.map((name) => operator.apply(name)))
  expect(await operator.withReason('Claimed', NAMES)).toHaveLength(2)
  const waiting = await operator.withReason('QuotaExceeded', NAMES)
  expect(waiting).toHaveLength(6)
  for (const name of waiting) {
    const { metadata, status } = operator.instances.get(key(name)) ?? {}
    expect(conditionOf({ status }, 'Ready')?.message).toContain('the namespace has 2 instances, and may have 2')
    const secret = await operator.store.get(Secret, key(`${name}-credentials`))
    expect([metadata?.finalizers, status?.name, secret]).toEqual([undefined, undefined, undefined])
  }
  expect((await operator.store.list(DatabaseServer)).items).toHaveLength(1)
})

test('the deletion of an admitted instance admits a waiting one; the deletion of a waiting instance admits none', async () => {
  await using operator = await start(2)
  const [one = '', other] = await operator.withReason('Claimed', NAMES)
  const [neverBegun = '', ...waiting] = await operator.withReason('QuotaExceeded', NAMES)
  await operator.remove(neverBegun)
  await operator.remove(one)
  await expect.poll(() => operator.withReason('Claimed', [other ?? '', ...waiting])).toHaveLength(2)
  expect(await operator.withReason('QuotaExceeded', waiting)).toHaveLength(4)
})

test('a lowered quota deletes no instance, and admits none until their number is below it', async () => {
  await using operator = await start(1)
  const { items } = await operator.store.list(SharedInstance)
  const names = items.map(({ metadata }) => metadata.name)
  const having = await operator.withReason('Claimed', names)
  expect(having).toHaveLength(2)
  for (const name of having) {
    await operator.store.mergePatch(SharedInstance, key(name), { spec: { passwordVersion: 2 } })
    await operator.untilInstance(name, (now) => now?.status?.passwordVersion === 2)
  }
  const waiting = await operator.withReason('QuotaExceeded', names)
  const [one = '', two = ''] = having
  await operator.remove(one)
  await operator.apply('late')
  expect(await operator.withReason('Claimed', [...waiting, 'late'])).toEqual([])
  await operator.remove(two)
  await expect.poll(() => operator.withReason('Claimed', [...waiting, 'late'])).toHaveLength(1)
  expect(await operator.withReason('QuotaExceeded', ['late'])).toEqual(['late'])
})
