import { expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { deleteExpected, requestDeletion } from './delete-expected.ts'

const KEEP = 'example.org/keep'
const key = { namespace: 'acme--prod', name: 'web' }

/** A tunnel that stays until its finalizer is taken away, of versions `old` and `now`. */
async function placed() {
  const { store, ...temporary } = await openTemporaryStore()
  await store.create(Namespace, { metadata: { name: key.namespace } })
  const first = await store.create(Tunnel, { metadata: { ...key, finalizers: [KEEP] }, spec: { regionId: 1 } })
  const found = await store.mergePatch(Tunnel, key, { spec: { displayName: 'Web' } })
  const [old, now] = [first.metadata.resourceVersion, found.metadata.resourceVersion]
  const isBeingDeleted = async () => (await store.get(Tunnel, key))?.metadata.deletionTimestamp !== undefined
  return { ...temporary, store, found, old, now, isBeingDeleted }
}

test.each([
  { does: 'without a condition', ifMatch: () => undefined },
  { does: 'at any version', ifMatch: () => '*' as const },
  { does: 'at its version', ifMatch: (_old: string, now: string) => [now] },
  { does: 'at one of several versions', ifMatch: (old: string, now: string) => [old, now] },
])('an object is deleted $does, and only the first request returns true', async ({ ifMatch }) => {
  await using place = await placed()
  const { store, found, old, now, isBeingDeleted } = place
  expect(await requestDeletion(store, Tunnel, found, ifMatch(old, now))).toBe(true)
  expect(await isBeingDeleted()).toBe(true)
  const deleting = await store.get(Tunnel, key)
  if (!deleting) expect.fail('the object is gone')
  expect(await requestDeletion(store, Tunnel, deleting, undefined)).toBe(false)
  await store.mergePatch(Tunnel, key, { metadata: { finalizers: [] } })
  expect(await requestDeletion(store, Tunnel, deleting, undefined)).toBe(false)
  expect(await requestDeletion(store, Tunnel, deleting, [now])).toBe(false)
  await expect(deleteExpected(store, Tunnel, deleting, undefined)).rejects.toMatchObject({ code: 'not_found' })
})

test('an object with another version is not deleted', async () => {
  await using place = await placed()
  const { store, found, old, isBeingDeleted } = place
  for (const ifMatch of [[old], [old, '1'], []]) {
    await expect(requestDeletion(store, Tunnel, found, ifMatch)).rejects.toMatchObject({ code: 'conflict' })
    await expect(deleteExpected(store, Tunnel, found, ifMatch)).rejects.toMatchObject({ code: 'conflict' })
  }
  expect(await isBeingDeleted()).toBe(false)
})
