import { afterAll, beforeAll, expect, test } from 'vitest'
import { Namespace, Secret } from '../../../crds/core.ts'
import type { Kind } from '../../../crds/kind.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { TenantNamespace } from '../../../crds/tenant-namespace.ts'
import { conditionOf, isReady } from '../../../store/conditions.ts'
import { StoreError, type Key, type Store } from '../../../store/port.ts'
import { type RunningOperator, runtimeAt, startOperator } from '../../support/operator/operator.ts'
import { startPostgres, type ThrowAwayPostgres } from '../../support/postgresql/postgres.ts'
import { postgresqlAdmin } from '../../../operator/engines/postgresql/postgresql.ts'
import type { ServerRuntime } from '../../../operator/server/runtime.ts'
import { patient } from '../../support/patience.ts'

const NAMESPACE = 'acme--prod'
const MANY = Array.from({ length: 20 }, (_, i) => `i-${i + 1}`)

let server: ThrowAwayPostgres
beforeAll(async () => {
  server = await startPostgres('15')
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
})

/** Returns the names of the databases and logins of tenants. */
async function tenants(): Promise<readonly string[]> {
  await using admin = postgresqlAdmin(server.target)
  return [...(await admin.catalog()).tenants.keys()]
}

const ready = (operator: RunningOperator, name: string) =>
  operator.untilInstance(name, (now) => now !== undefined && isReady(now))
const gone = (operator: RunningOperator, name: string) => operator.untilInstance(name, (now) => now === undefined)

/** Returns a store that forbids Secrets while `isForbidden`, as when the namespace controller deletes the operator's RoleBinding first. */
function withoutSecrets(store: Store, isForbidden: () => boolean): Store {
  const refuse = (kind: Kind, key: Key): void => {
    if (kind === Secret && key.namespace === NAMESPACE && isForbidden())
      throw new StoreError('forbidden', 'no right to Secrets here')
  }
  return new Proxy(store, {
    get(target, property: keyof Store) {
      const method = Reflect.get(target, property) as (kind: Kind, key: Key, ...rest: unknown[]) => unknown
      if (property === 'watch' || property === 'list') return method.bind(target)
      return async (kind: Kind, about: Key & { readonly metadata?: Key }, ...rest: unknown[]) => {
        refuse(kind, about.metadata ?? about)
        return method.call(target, kind, about, ...rest)
      }
    },
  })
}

test('the deletion of a namespace with 20 instances removes all databases and logins, even when Secrets are forbidden first', async () => {
  let isForbidden = false
  await using operator = await startOperator({ target: server.target, wrap: (store) => withoutSecrets(store, () => isForbidden) })
  await Promise.all(MANY.map((name) => operator.create(name)))
  await Promise.all(MANY.map((name) => ready(operator, name)))
  expect(await tenants()).toHaveLength(20)
  // Two more instances are being claimed during the deletion.
  await Promise.all(['late-1', 'late-2'].map((name) => operator.create(name)))
  isForbidden = true
  await operator.store.delete(Namespace, { name: NAMESPACE })
  await Promise.all([...MANY, 'late-1', 'late-2'].map((name) => gone(operator, name)))
  await expect.poll(() => operator.store.get(Namespace, { name: NAMESPACE })).toBeUndefined()
  await expect.poll(() => operator.store.get(TenantNamespace, { name: NAMESPACE })).toBeUndefined()
  expect(await tenants()).toEqual([])
})

test('an instance in a namespace without permission for Secrets reports that, and is claimed when permission is granted', async () => {
  let isForbidden = true
  await using operator = await startOperator({ target: server.target, wrap: (store) => withoutSecrets(store, () => isForbidden) })
  await operator.create('outside')
  await operator.untilInstance('outside', (now) => now !== undefined && conditionOf(now, 'Ready')?.reason === 'NoAccess')
  isForbidden = false
  await ready(operator, 'outside')
  await operator.store.delete(SharedInstance, { namespace: NAMESPACE, name: 'outside' })
  await gone(operator, 'outside')
})

test('a TenantNamespace deleted by kubectl deletes its Namespace and the databases in it', async () => {
  await using operator = await startOperator({ target: server.target })
  await Promise.all(['a', 'b'].map((name) => operator.create(name)))
  await Promise.all(['a', 'b'].map((name) => ready(operator, name)))
  await operator.store.delete(TenantNamespace, { name: NAMESPACE })
  const isDeleted = (now: unknown) => (now === undefined ? { gone: true } : undefined)
  await operator.caches.tenantNamespaces.waitFor({ name: NAMESPACE }, isDeleted, AbortSignal.timeout(patient(60_000)))
  expect(await operator.store.get(Namespace, { name: NAMESPACE })).toBeUndefined()
  expect(await tenants()).toEqual([])
})

/** Returns a runtime that reports every server as running or failed, as the test switches it. */
function switchableRuntime() {
  const handlers: ((name: string) => void)[] = []
  let isUp = true
  const up = runtimeAt(server.target)
  const runtime: ServerRuntime = {
    ...up,
    onChange(handler) {
      handlers.push(handler)
    },
    ensure: async (...args) => (isUp ? up.ensure(...args) : { phase: 'failed', reason: 'Crashed', message: 'no answer' }),
  }
  const switchTo = (to: 'up' | 'down') => {
    isUp = to === 'up'
    for (const handler of handlers) handler('postgresql-15-4-0-r1-1')
  }
  return { runtime, switchTo }
}

const isBlocked = (now: SharedInstance | undefined): boolean =>
  now !== undefined &&
  conditionOf(now, 'CleanupBlocked')?.status === 'True' &&
  conditionOf(now, 'Ready')?.reason === 'CleanupBlocked'

test('a deletion reports CleanupBlocked while the server is down, until the server is back or the deletion is forced', async () => {
  const { runtime, switchTo } = switchableRuntime()
  await using operator = await startOperator({ target: server.target, runtime })
  const made = await Promise.all(['waits', 'forced'].map((name) => operator.create(name)))
  await Promise.all(['waits', 'forced'].map((name) => ready(operator, name)))
  switchTo('down')
  await Promise.all(['waits', 'forced'].map((name) => operator.untilInstance(name, (now) => now !== undefined && !isReady(now))))
  for (const { metadata } of made) await operator.store.delete(SharedInstance, { namespace: NAMESPACE, name: metadata.name })
  await Promise.all(['waits', 'forced'].map((name) => operator.untilInstance(name, isBlocked)))

  const annotations = { 'mooring.dev/force-delete': 'true' }
  await operator.store.mergePatch(SharedInstance, { namespace: NAMESPACE, name: 'forced' }, { metadata: { annotations } })
  await gone(operator, 'forced')
  expect(operator.instances.get({ namespace: NAMESPACE, name: 'waits' })).toBeDefined()

  switchTo('up')
  await gone(operator, 'waits')
  // The sweeper removes the database that the forced deletion left.
  await using admin = postgresqlAdmin(server.target)
  const left = await tenants()
  expect(left).toHaveLength(1)
  for (const name of left) await admin.drop(name)
})

test('a deletion reports CleanupBlocked while its server takes no writes, until the deletion is forced', async () => {
  await using operator = await startOperator({ target: server.target })
  await operator.create('stuck')
  await ready(operator, 'stuck')
  const admin = await server.client()
  const { status } = operator.instances.get({ namespace: NAMESPACE, name: 'stuck' }) ?? {}
  const name = status?.name ?? ''
  await admin.query('ALTER SYSTEM SET default_transaction_read_only = on')
  await admin.query('SELECT pg_reload_conf()')
  await operator.store.delete(SharedInstance, { namespace: NAMESPACE, name: 'stuck' })
  await operator.untilInstance('stuck', isBlocked)
  const annotations = { 'mooring.dev/force-delete': 'true' }
  await operator.store.mergePatch(SharedInstance, { namespace: NAMESPACE, name: 'stuck' }, { metadata: { annotations } })
  await gone(operator, 'stuck')
  await admin.query('SET default_transaction_read_only = off')
  await admin.query('ALTER SYSTEM RESET default_transaction_read_only')
  await admin.query('SELECT pg_reload_conf()')
  await using engine = postgresqlAdmin(server.target)
  await engine.drop(name)
})
