import { describe, expect, test, vi } from 'vitest'
import { Namespace, Secret } from '../../../crds/core.ts'
import type { OwnerReference } from '../../../crds/kind.ts'
import { Region } from '../../../crds/region.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import {
  aRegion,
  finalizer,
  instance,
  type Open,
  openTestStore,
  type TestStore,
  expectStoreError,
  unique,
  expectGone,
  reader,
} from './test-store.ts'
import { LATER } from '../../support/patience.ts'

const held = { metadata: { finalizers: [finalizer] } }

function finalizers(open: Open): void {
  test('without finalizers an object is gone when delete resolves', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    await at.store.create(SharedInstance, instance(key))
    await at.store.delete(SharedInstance, key)
    expect(await at.store.get(SharedInstance, key)).toBeUndefined()
  })

  test('with finalizers an object is marked once, and deleted with the last of them', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const key = { namespace, name: 'a' }
    const made = await store.create(
      SharedInstance,
      instance(key, { metadata: { finalizers: [finalizer, 'mooring.dev/second'] } }),
    )
    await using watch = reader(store, SharedInstance, { namespace, resourceVersion: made.metadata.resourceVersion })
    await store.delete(SharedInstance, key)
    const marked = await store.get(SharedInstance, key)
    expect(marked?.metadata.deletionTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    await store.delete(SharedInstance, key)
    expect(await store.get(SharedInstance, key)).toEqual(marked)
    await store.mergePatch(SharedInstance, key, { metadata: { finalizers: [finalizer] } })
    await store.mergePatch(SharedInstance, key, { metadata: { finalizers: [] } })
    expect(await store.get(SharedInstance, key)).toBeUndefined()
    expect(await watch.take(3)).toEqual(['modified a', 'modified a', 'deleted a'])
  })

  test('replace can remove the last finalizer, too', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    await at.store.create(SharedInstance, instance(key, held))
    await at.store.delete(SharedInstance, key)
    const marked = await at.store.get(SharedInstance, key)
    if (marked) await at.store.replace(SharedInstance, { ...marked, metadata: { ...marked.metadata, finalizers: [] } })
    expect(await at.store.get(SharedInstance, key)).toBeUndefined()
  })

  test('an object under deletion can be changed, but gets no new finalizer', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const key = { namespace, name: 'a' }
    await store.create(SharedInstance, instance(key, held))
    await store.delete(SharedInstance, key)
    expect((await store.mergePatch(SharedInstance, key, { spec: { identifier: 'x' } })).spec.identifier).toBe('x')
    expect((await store.patchStatus(SharedInstance, key, { host: 'h' })).status?.host).toBe('h')
    const more = { metadata: { finalizers: [finalizer, 'mooring.dev/late'] } }
    expect((await expectStoreError(store.mergePatch(SharedInstance, key, more))).code).toBe('invalid')
    expect((await expectStoreError(store.create(SharedInstance, instance(key)))).code).toBe('already_exists')
    await store.mergePatch(SharedInstance, key, { metadata: { finalizers: null } })
  })
}

function namespaces(open: Open): void {
  test('a deleted Namespace deletes its content, then itself', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    await store.create(SharedInstance, instance({ namespace, name: 'a' }))
    await store.create(Secret, { metadata: { namespace, name: 'b' } })
    await store.delete(Namespace, { name: namespace })
    await expectGone(store, Namespace, { name: namespace })
    expect(await store.get(SharedInstance, { namespace, name: 'a' })).toBeUndefined()
    expect(await store.get(Secret, { namespace, name: 'b' })).toBeUndefined()
  })

  test('a Namespace stays terminating and rejects new objects until its last finalizer is removed', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const key = { namespace, name: 'a' }
    await store.create(SharedInstance, instance(key, held))
    await store.create(Secret, { metadata: { namespace, name: 'b' } })
    await store.delete(Namespace, { name: namespace })
    await expectGone(store, Secret, { namespace, name: 'b' })
    await vi.waitFor(async () => {
      expect((await store.get(SharedInstance, key))?.metadata.deletionTimestamp).toBeDefined()
    }, LATER)
    const terminating = await store.get(Namespace, { name: namespace })
    expect(terminating?.metadata.deletionTimestamp).toBeDefined()
    expect(terminating?.status?.phase).toBe('Terminating')
    expect((await expectStoreError(store.create(SharedInstance, instance({ namespace, name: 'late' })))).code).toBe('forbidden')
    await store.delete(Namespace, { name: namespace })
    await store.mergePatch(SharedInstance, key, { metadata: { finalizers: null } })
    await expectGone(store, Namespace, { name: namespace })
  })
}

function owners(open: Open): void {
  async function owner({ store, namespace }: TestStore, name: string): Promise<OwnerReference> {
    const { apiVersion, kind, metadata } = await store.create(SharedInstance, instance({ namespace, name }))
    return { apiVersion, kind, name, uid: metadata.uid }
  }
  const dependant = ({ store, namespace }: TestStore, name: string, ownerReferences: OwnerReference[]): Promise<unknown> =>
    store.create(Secret, { metadata: { namespace, name, ownerReferences } })

  test('dependants are deleted with their owner, recursively', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    await dependant(at, 'child', [await owner(at, 'a')])
    const child = await store.get(Secret, { namespace, name: 'child' })
    await dependant(at, 'grandchild', [{ apiVersion: 'v1', kind: 'Secret', name: 'child', uid: child?.metadata.uid ?? '' }])
    await dependant(at, 'stranger', [])
    await store.delete(SharedInstance, { namespace, name: 'a' })
    await expectGone(store, Secret, { namespace, name: 'child' })
    await expectGone(store, Secret, { namespace, name: 'grandchild' })
    expect(await store.get(Secret, { namespace, name: 'stranger' })).toBeDefined()
  })

  test('a dependant of two owners stays until both are deleted', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const [one, two] = [await owner(at, 'one'), await owner(at, 'two')]
    const key = { namespace, name: 'child' }
    await dependant(at, 'child', [one, two])
    await store.delete(SharedInstance, { namespace, name: 'one' })
    await vi.waitFor(async () => {
      expect((await store.get(Secret, key))?.metadata.ownerReferences).toEqual([two])
    }, LATER)
    await store.delete(SharedInstance, { namespace, name: 'two' })
    await expectGone(store, Secret, key)
  })

  test('an owner with finalizers keeps its dependants until it is deleted', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const key = { namespace, name: 'a' }
    const made = await store.create(SharedInstance, instance(key, held))
    await dependant(at, 'child', [{ apiVersion: made.apiVersion, kind: made.kind, name: 'a', uid: made.metadata.uid }])
    await dependant(at, 'orphan', [{ apiVersion: made.apiVersion, kind: made.kind, name: 'b', uid: aRegion }])
    await store.delete(SharedInstance, key)
    await expectGone(store, Secret, { namespace, name: 'orphan' })
    expect(await store.get(Secret, { namespace, name: 'child' })).toBeDefined()
    await store.mergePatch(SharedInstance, key, { metadata: { finalizers: null } })
    await expectGone(store, Secret, { namespace, name: 'child' })
  })

  test('a dependant whose owner is deleted, or has another uid, is collected', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const first = await owner(at, 'a')
    await store.delete(SharedInstance, { namespace, name: 'a' })
    await owner(at, 'a')
    await dependant(at, 'child', [first])
    await expectGone(store, Secret, { namespace, name: 'child' })
    expect(await store.get(SharedInstance, { namespace, name: 'a' })).toBeDefined()
  })

  test('a dependant of a cluster-scoped owner is deleted with it', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const name = unique()
    const { apiVersion, kind, metadata } = await store.create(Region, {
      metadata: { name },
      spec: { id: aRegion, regionId: 1, name: 'Conformance' },
    })
    await dependant(at, 'child', [{ apiVersion, kind, name, uid: metadata.uid }])
    expect(await store.get(Secret, { namespace, name: 'child' })).toBeDefined()
    await store.delete(Region, { name })
    await expectGone(store, Secret, { namespace, name: 'child' })
  })
}

/** Clauses about deletion. */
export function deletionClauses(open: Open): void {
  describe('finalizers', () => finalizers(open))
  describe('Namespaces', () => namespaces(open))
  describe('owners', () => owners(open))
}
