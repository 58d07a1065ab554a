import { describe, expect, test } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import { Region } from '../../../crds/region.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { aRegion, instance, type Open, openTestStore, testStoreIn, expectStoreError, unique, revisionOf } from './test-store.ts'

function isDeepFrozen(value: unknown): boolean {
  return typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(isDeepFrozen))
}

function creation(open: Open): void {
  test('create fills in metadata and defaults, and get returns the same', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    const made = await at.store.create(SharedInstance, instance(key, { metadata: { labels: { tier: 'x' } } }))
    expect(made).toMatchObject({
      apiVersion: 'mooring.dev/v1alpha1',
      kind: 'SharedInstance',
      metadata: { ...key, generation: 1, labels: { tier: 'x' } },
      spec: { enabled: true, passwordVersion: 1, resetVersion: 0 },
    })
    expect(made.metadata.uid).toMatch(/^[0-9a-f-]{36}$/)
    expect(made.metadata.resourceVersion).toMatch(/^[1-9]\d*$/)
    expect(made.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    expect(await at.store.get(SharedInstance, key)).toEqual(made)
  })

  test('get of a missing object returns undefined', async () => {
    await using at = await openTestStore(open)
    expect(await at.store.get(SharedInstance, { namespace: at.namespace, name: 'none' })).toBeUndefined()
  })

  test('objects are deeply frozen', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    const made = await at.store.create(SharedInstance, instance(key, { metadata: { labels: { a: 'b' } } }))
    const listed = await at.store.list(SharedInstance, { namespace: at.namespace })
    expect([made, await at.store.get(SharedInstance, key), ...listed.items].map(isDeepFrozen)).toEqual([true, true, true])
  })

  test('changing a draft after its creation has no effect', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    const labels = { a: 'before' }
    const creating = at.store.create(SharedInstance, instance(key, { metadata: { labels } }))
    await creating
    labels.a = 'after'
    expect((await at.store.get(SharedInstance, key))?.metadata.labels).toEqual({ a: 'before' })
  })

  test('a name is unique in a namespace and kind, and a recreated object has another uid', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    const first = await at.store.create(SharedInstance, instance(key))
    expect((await expectStoreError(at.store.create(SharedInstance, instance(key)))).code).toBe('already_exists')
    await at.store.create(Secret, { metadata: key })
    await at.store.delete(SharedInstance, key)
    const second = await at.store.create(SharedInstance, instance(key))
    expect(second.metadata.uid).not.toBe(first.metadata.uid)
    expect(second.metadata.generation).toBe(1)
  })

  test('exactly one of many concurrent creations of a name succeeds', async () => {
    await using at = await openTestStore(open)
    const draft = instance({ namespace: at.namespace, name: 'a' })
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => at.store.create(SharedInstance, draft)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  test('creation in a missing namespace is rejected', async () => {
    await using subject = await open()
    const draft = instance({ namespace: unique(), name: 'a' })
    expect((await expectStoreError(subject.store.create(SharedInstance, draft))).code).toBe('not_found')
  })

  test('Secrets can be created, read and listed like other objects', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    await at.store.create(Secret, { metadata: key, data: { password: 'aHVudGVy' } })
    const changed = await at.store.mergePatch(Secret, key, { data: { user: 'YW5u' } })
    expect(changed).toMatchObject({
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'Opaque',
      data: { password: 'aHVudGVy', user: 'YW5u' },
    })
    expect(await at.store.get(Secret, key)).toEqual(changed)
  })
}

function lists(open: Open): void {
  test('all kinds share one revision counter, and a list has the newest revision', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    const one = await at.store.create(SharedInstance, instance(key))
    const two = await at.store.create(Secret, { metadata: key })
    const three = await at.store.mergePatch(SharedInstance, key, { spec: { enabled: false } })
    const listed = await at.store.list(SharedInstance, { namespace: at.namespace })
    const revisions = [revisionOf(one), revisionOf(two), revisionOf(three)]
    expect(revisions).toEqual([...new Set(revisions)].sort((a, b) => a - b))
    expect(Number(listed.resourceVersion)).toBeGreaterThanOrEqual(revisionOf(three))
  })

  test('a list is ordered by namespace, then name', async () => {
    await using one = await openTestStore(open)
    await using two = await testStoreIn(one)
    const set = { labels: { set: unique() } }
    const [low = '', high = ''] = [one.namespace, two.namespace].sort()
    for (const [namespace, name] of [
      [high, 'a'],
      [low, 'c'],
      [low, 'a'],
      [low, 'b'],
    ] as const) {
      await one.store.create(SharedInstance, instance({ namespace, name }, { metadata: set }))
    }
    const { items } = await one.store.list(SharedInstance, set)
    expect(items.map(({ metadata }) => [metadata.namespace, metadata.name])).toEqual([
      [low, 'a'],
      [low, 'b'],
      [low, 'c'],
      [high, 'a'],
    ])
    const inLow = await one.store.list(SharedInstance, { namespace: low })
    expect(inLow.items.map(({ metadata }) => metadata.name)).toEqual(['a', 'b', 'c'])
  })

  test('a list by labels returns the objects with all of them', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    await store.create(SharedInstance, instance({ namespace, name: 'a' }, { metadata: { labels: { x: '1', y: '1' } } }))
    await store.create(SharedInstance, instance({ namespace, name: 'b' }, { metadata: { labels: { x: '1', y: '2' } } }))
    await store.create(SharedInstance, instance({ namespace, name: 'c' }))
    const names = async (labels: Record<string, string>): Promise<string[]> =>
      (await store.list(SharedInstance, { namespace, labels })).items.map(({ metadata }) => metadata.name)
    expect(await names({ x: '1' })).toEqual(['a', 'b'])
    expect(await names({ x: '1', y: '2' })).toEqual(['b'])
    expect(await names({ x: '3' })).toEqual([])
  })

  test('a cluster-scoped kind has no namespace', async () => {
    await using subject = await open()
    const name = unique()
    const spec = { id: aRegion, regionId: 1, name: 'Conformance' }
    const made = await subject.store.create(Region, { metadata: { name, labels: { set: name } }, spec })
    expect(made.metadata.namespace).toBeUndefined()
    expect((await subject.store.list(Region, { labels: { set: name } })).items).toEqual([made])
    await subject.store.delete(Region, { name })
  })
}

function concurrency(open: Open): void {
  test.each(['replace', 'mergePatch', 'patchStatus', 'delete'] as const)(
    '%s is refused at an old resourceVersion',
    async (write) => {
      await using at = await openTestStore(open)
      const key = { namespace: at.namespace, name: 'a' }
      const old = await at.store.create(SharedInstance, instance(key))
      const newest = await at.store.mergePatch(SharedInstance, key, { spec: { enabled: false } })
      const { resourceVersion } = old.metadata
      const writes = {
        replace: () => at.store.replace(SharedInstance, old),
        mergePatch: () => at.store.mergePatch(SharedInstance, key, { spec: { identifier: 'late' } }, { resourceVersion }),
        patchStatus: () => at.store.patchStatus(SharedInstance, key, { host: 'late' }, { resourceVersion }),
        delete: () => at.store.delete(SharedInstance, key, { resourceVersion }),
      }
      expect((await expectStoreError(writes[write]())).code).toBe('conflict')
      expect(await at.store.get(SharedInstance, key)).toEqual(newest)
    },
  )

  test.each(['replace', 'mergePatch', 'patchStatus', 'delete'] as const)('%s with another uid is rejected', async (write) => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    const made = await at.store.create(SharedInstance, instance(key))
    const { uid, resourceVersion } = { uid: aRegion, resourceVersion: made.metadata.resourceVersion }
    const writes = {
      replace: () =>
        at.store.replace(SharedInstance, {
          ...made,
          spec: { ...made.spec, identifier: 'x' },
          metadata: { ...made.metadata, uid },
        }),
      mergePatch: () => at.store.mergePatch(SharedInstance, key, { spec: { identifier: 'x' } }, { uid, resourceVersion }),
      patchStatus: () => at.store.patchStatus(SharedInstance, key, { host: 'x' }, { uid }),
      delete: () => at.store.delete(SharedInstance, key, { uid }),
    }
    expect((await expectStoreError(writes[write]())).code).toBe('conflict')
    expect(await at.store.get(SharedInstance, key)).toEqual(made)
  })

  test.each(['replace', 'mergePatch', 'patchStatus', 'delete'] as const)(
    '%s of what is not there is not_found',
    async (write) => {
      await using at = await openTestStore(open)
      const key = { namespace: at.namespace, name: 'a' }
      const made = await at.store.create(SharedInstance, instance(key))
      await at.store.delete(SharedInstance, key)
      const writes = {
        replace: () => at.store.replace(SharedInstance, made),
        mergePatch: () => at.store.mergePatch(SharedInstance, key, {}),
        patchStatus: () => at.store.patchStatus(SharedInstance, key, {}),
        delete: () => at.store.delete(SharedInstance, key),
      }
      expect((await expectStoreError(writes[write]())).code).toBe('not_found')
    },
  )

  test('concurrent updates with resourceVersion as precondition lose none', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    await at.store.create(SharedInstance, instance(key))
    async function increment(): Promise<void> {
      const current = await at.store.get(SharedInstance, key)
      const resetVersion = (current?.spec.resetVersion ?? 0) + 1
      const written = at.store.mergePatch(SharedInstance, key, { spec: { resetVersion } }, current?.metadata)
      if (!(await written.then(() => true).catch(() => false))) await increment()
    }
    await Promise.all(Array.from({ length: 8 }, increment))
    expect((await at.store.get(SharedInstance, key))?.spec.resetVersion).toBe(8)
  })
}

/** Clauses about creation, lists and optimistic concurrency. */
export function writeClauses(open: Open): void {
  describe('creating', () => creation(open))
  describe('listing', () => lists(open))
  describe('optimistic concurrency', () => concurrency(open))
}
