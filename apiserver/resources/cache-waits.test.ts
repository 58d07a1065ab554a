import { expect, test } from 'vitest'
import { Organization } from '../../crds/organization.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { createCache } from '../../store/cache.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { Namespace } from '../../crds/core.ts'
import { instanceBody } from '../../test/support/api/instance-api.ts'
import { BEHIND_MS, createCatchUp, withinBudget } from './cache-waits.ts'
import { createInstanceLookup } from '../instances/instance-lookup.ts'
import { createScopes } from '../auth/scope.ts'

const access = { may: async () => true, memberships: async () => [] }
const principal = { user: 'local:erin', groups: [] }

/** Creates a cache of instances that starts to follow on request, and an instance that another API server created. */
async function behind() {
  const { store, ...temporary } = await openTemporaryStore()
  await store.create(Namespace, { metadata: { name: 'acme--prod' } })
  const made = await store.create(SharedInstance, { metadata: { namespace: 'acme--prod', name: 'a' }, spec: instanceBody })
  const [instances, namespaces] = [createCache({ store, kind: SharedInstance }), createCache({ store, kind: Namespace })]
  const stop = new AbortController()
  const running: Promise<void>[] = []
  const find = (ms: number) => {
    const catchUp = createCatchUp(ms)
    return createInstanceLookup({ instances, access, scopes: createScopes({ access, namespaces, catchUp }), catchUp })
  }
  return {
    uid: made.metadata.uid,
    find,
    follow: () => void running.push(instances.run(stop.signal)),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await Promise.all(running)
      await temporary[Symbol.asyncDispose]()
    },
  }
}

test('an object of another API server is found as soon as the watch delivers it', async () => {
  await using replica = await behind()
  const finding = replica.find(60_000)(principal, replica.uid.toUpperCase())
  replica.follow()
  expect((await finding).metadata.uid).toBe(replica.uid)
})

test.each([
  { what: 'an id that nothing has, after a while', id: '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01', ms: 20 },
  { what: 'what cannot be an id, at once', id: 'mine', ms: 2 ** 30 },
  { what: 'an id where no other process creates, at once', id: '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01', ms: 0 },
])('no object is found by $what', async ({ id, ms }) => {
  await using replica = await behind()
  await expect(replica.find(ms)(principal, id)).rejects.toMatchObject({ code: 'not_found' })
})

test('the wait is short, and an existing object is found without one', async () => {
  expect(BEHIND_MS).toBeLessThanOrEqual(500)
  await using temporary = await openTemporaryStore()
  const cache = createCache({ store: temporary.store, kind: Organization })
  const found = { name: 'acme' }
  expect(await createCatchUp(2 ** 30)(cache, () => found)).toBe(found)
})

const untilAborted = (signal: AbortSignal) =>
  new Promise<object>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error))
  })

test('withinBudget returns a result that is in time', async () => {
  expect(await withinBudget(60_000, () => Promise.resolve({ done: true }))).toEqual({ done: true })
})

test('withinBudget returns undefined when the time runs out', async () => {
  expect(await withinBudget(1, untilAborted)).toBeUndefined()
})

test('withinBudget throws the error of the wait', async () => {
  await expect(withinBudget(60_000, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
})
