import { describe, expect, test } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import type { Store } from '../../../store/port.ts'
import { instance, type Open, openTestStore, testStoreIn, expectStoreError, reader, revisionOf } from './test-store.ts'

async function revision(store: Store, namespace: string): Promise<string> {
  return (await store.list(SharedInstance, { namespace })).resourceVersion
}

function following(open: Open): void {
  test('a watch replays the events after its revision, then follows new ones', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    await store.create(SharedInstance, instance({ namespace, name: 'before' }))
    const resourceVersion = await revision(store, namespace)
    await store.create(SharedInstance, instance({ namespace, name: 'a' }))
    await store.mergePatch(SharedInstance, { namespace, name: 'a' }, { spec: { enabled: false } })
    await using watch = reader(store, SharedInstance, { namespace, resourceVersion })
    expect(await watch.take(2)).toEqual(['added a', 'modified a'])
    await store.patchStatus(SharedInstance, { namespace, name: 'a' }, { host: 'h' })
    await store.delete(SharedInstance, { namespace, name: 'before' })
    expect(await watch.take(2)).toEqual(['modified a', 'deleted before'])
  })

  test('a watch from the revision of an event continues right after it', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const objects = []
    for (const name of ['a', 'b', 'c']) objects.push(await store.create(SharedInstance, instance({ namespace, name })))
    for (const [index, { metadata }] of objects.slice(0, 2).entries()) {
      await using watch = reader(store, SharedInstance, { namespace, resourceVersion: metadata.resourceVersion })
      expect((await watch.next()).object).toEqual(objects[index + 1])
    }
  })

  test('a watch delivers each of many concurrent changes once, in the order of revisions', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const resourceVersion = await revision(store, namespace)
    const names = Array.from({ length: 30 }, (_, index) => `i${index}`)
    const written = names.map(async (name) => {
      await store.create(SharedInstance, instance({ namespace, name }))
      await store.patchStatus(SharedInstance, { namespace, name }, { host: 'h' })
    })
    await using watch = reader(store, SharedInstance, { namespace, resourceVersion })
    const events = []
    while (events.length < 60) events.push(await watch.next())
    await Promise.all(written)
    const revisions = events.map(({ object }) => revisionOf(object))
    expect(revisions).toEqual([...new Set(revisions)].sort((a, b) => a - b))
    for (const name of names) {
      const types = events.filter(({ object }) => object.metadata.name === name).map(({ type }) => type)
      expect(types).toEqual(['added', 'modified'])
    }
  })

  test('a watch delivers its own kind and namespace only', async () => {
    await using at = await openTestStore(open)
    await using other = await testStoreIn(at)
    const { store, namespace } = at
    await using watch = reader(store, SharedInstance, { namespace, resourceVersion: await revision(store, namespace) })
    await store.create(Secret, { metadata: { namespace, name: 'secret' } })
    await other.store.create(SharedInstance, instance({ namespace: other.namespace, name: 'elsewhere' }))
    await store.create(SharedInstance, instance({ namespace, name: 'mine' }))
    expect(await watch.take(1)).toEqual(['added mine'])
  })

  test('a watch without a namespace delivers all namespaces', async () => {
    await using one = await openTestStore(open)
    await using two = await testStoreIn(one)
    const { store } = one
    const labels = { set: one.namespace }
    await using watch = reader(store, SharedInstance, { labels, resourceVersion: await revision(store, one.namespace) })
    for (const { namespace } of [one, two]) {
      await store.create(SharedInstance, instance({ namespace, name: 'a' }, { metadata: { labels } }))
    }
    const namespaces = [await watch.next(), await watch.next()].map(({ object }) => object.metadata.namespace)
    expect(namespaces).toEqual([one.namespace, two.namespace])
  })
}

function details(open: Open): void {
  test('objects of events equal those that get returns', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const resourceVersion = await revision(store, namespace)
    const made = await store.create(SharedInstance, instance({ namespace, name: 'a' }))
    await using watch = reader(store, SharedInstance, { namespace, resourceVersion })
    expect(await watch.next()).toEqual({ type: 'added', object: made })
  })

  test('a deleted event carries the last object at a newer revision', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const made = await store.create(SharedInstance, instance({ namespace, name: 'a' }))
    await using watch = reader(store, SharedInstance, { namespace, resourceVersion: made.metadata.resourceVersion })
    await store.delete(SharedInstance, { namespace, name: 'a' })
    const { type, object } = await watch.next()
    expect(type).toBe('deleted')
    expect(revisionOf(object)).toBeGreaterThan(revisionOf(made))
    const { resourceVersion } = object.metadata
    expect(object).toEqual({ ...made, metadata: { ...made.metadata, resourceVersion } })
  })

  test('a watch by labels reports an object as added and deleted when its labels change', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const key = { namespace, name: 'a' }
    const resourceVersion = await revision(store, namespace)
    await using watch = reader(store, SharedInstance, { namespace, labels: { on: 'yes' }, resourceVersion })
    const relabel = (on: string | null): Promise<unknown> =>
      store.mergePatch(SharedInstance, key, { metadata: { labels: { on } } })
    await store.create(SharedInstance, instance(key))
    await relabel('yes')
    await store.patchStatus(SharedInstance, key, { host: 'h' })
    await relabel('no')
    await store.patchStatus(SharedInstance, key, { host: 'unseen' })
    await relabel('yes')
    await relabel(null)
    await relabel('yes')
    await store.delete(SharedInstance, key)
    const seen = ['added a', 'modified a', 'deleted a', 'added a', 'deleted a', 'added a', 'deleted a']
    expect(await watch.take(seen.length)).toEqual(seen)
  })

  test('an aborted watch ends without an error', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const abort = new AbortController()
    const options = { namespace, resourceVersion: await revision(store, namespace), signal: abort.signal }
    const types: string[] = []
    await store.create(SharedInstance, instance({ namespace, name: 'a' }))
    for await (const event of store.watch(SharedInstance, options)) {
      types.push(event.type)
      if (event.type === 'added') abort.abort()
    }
    expect(types.filter((type) => type !== 'bookmark')).toEqual(['added'])
    for await (const event of store.watch(SharedInstance, options)) types.push(event.type)
    expect(types.filter((type) => type !== 'bookmark')).toEqual(['added'])
  })

  test('a watch from a compacted revision fails with gone', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    if (!at.compact) return
    const resourceVersion = await revision(store, namespace)
    await store.create(SharedInstance, instance({ namespace, name: 'a' }))
    await at.compact()
    await using old = reader(store, SharedInstance, { namespace, resourceVersion })
    expect((await expectStoreError(old.next())).code).toBe('gone')
    await using watch = reader(store, SharedInstance, { namespace, resourceVersion: await revision(store, namespace) })
    await store.create(SharedInstance, instance({ namespace, name: 'b' }))
    expect(await watch.take(1)).toEqual(['added b'])
  })
}

/** Clauses about watches. Every reader checks that bookmarks do not run ahead of events. */
export function watchClauses(open: Open): void {
  describe('watching', () => following(open))
  describe('events', () => details(open))
}
