import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Namespace, Secret } from '../crds/core.ts'
import { SharedInstance } from '../crds/shared-instance.ts'
import { conformance } from '../test/conformance/store.ts'
import { instance, expectStoreError, reader } from '../test/conformance/store/test-store.ts'
import { createEmbeddedStore } from './embedded.ts'
import { openTemporaryStore, temporaryDir, type TemporaryStore } from '../test/support/store/temporary-store.ts'
import type { Store } from './port.ts'

let shared: TemporaryStore
beforeAll(async () => {
  shared = await openTemporaryStore({ bookmarkMs: 1 })
})
afterAll(() => shared[Symbol.asyncDispose]())

// One store for all conformance tests, like a real API server: starting a thread for each would take most of the time.
conformance('EmbeddedStore', () =>
  Promise.resolve({
    store: shared.store,
    async compact() {
      shared.store.compact()
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }),
)

const namespace = 'test'
const key = { namespace, name: 'a' }
const withNamespace = (store: Store): Promise<unknown> => store.create(Namespace, { metadata: { name: namespace } })

describe('durability', () => {
  test('a reopened store has the same objects and continues its revisions', async () => {
    await using dir = await temporaryDir()
    const first = await createEmbeddedStore(dir)
    await withNamespace(first)
    await first.create(SharedInstance, instance(key, { metadata: { finalizers: ['mooring.dev/x'] } }))
    await first.patchStatus(SharedInstance, key, { host: 'h' })
    await first.create(Secret, { metadata: { namespace, name: 'gone' } })
    await first.delete(Secret, { namespace, name: 'gone' })
    const before = await first.list(SharedInstance)
    await first.close()
    await using second = await createEmbeddedStore(dir)
    expect(await second.list(SharedInstance)).toEqual(before)
    expect(await second.get(Secret, { namespace, name: 'gone' })).toBeUndefined()
    const next = await second.mergePatch(SharedInstance, key, { spec: { enabled: false } })
    expect(Number(next.metadata.resourceVersion)).toBe(Number(before.resourceVersion) + 1)
  })

  test('after a reopen, a watch from an earlier revision is gone, a watch from the current one is not', async () => {
    await using dir = await temporaryDir()
    const first = await createEmbeddedStore(dir)
    await withNamespace(first)
    const { resourceVersion } = await first.list(SharedInstance)
    await first.create(SharedInstance, instance(key))
    await first.close()
    await using second = await createEmbeddedStore(dir)
    await using old = reader(second, SharedInstance, { resourceVersion })
    expect((await expectStoreError(old.next())).code).toBe('gone')
    await using watch = reader(second, SharedInstance, { resourceVersion: (await second.list(SharedInstance)).resourceVersion })
    await second.delete(SharedInstance, key)
    expect(await watch.take(1)).toEqual(['deleted a'])
  })

  test('interrupted clean-up continues after a reopen', async () => {
    await using dir = await temporaryDir()
    await using first = await createEmbeddedStore(dir)
    await withNamespace(first)
    const owner = { apiVersion: 'v1', kind: 'Secret', name: 'owner', uid: '0' }
    const body = { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', data: {} }
    const meta = { namespace, generation: 1, resourceVersion: '1', creationTimestamp: '2030-01-01T00:00:00Z' }
    await first.close()
    // As after a crash between the deletion of the owner and that of its dependant.
    const db = new DatabaseSync(dir.path)
    const orphan = { ...body, metadata: { ...meta, name: 'orphan', uid: '1', ownerReferences: [owner] } }
    db.prepare('INSERT INTO objects VALUES (?, ?, ?, ?)').run('secrets', namespace, 'orphan', JSON.stringify(orphan))
    db.close()
    await using second = await createEmbeddedStore(dir)
    await vi.waitFor(
      async () => {
        expect(await second.get(Secret, { namespace, name: 'orphan' })).toBeUndefined()
      },
      { timeout: 60_000 },
    )
  })

  test('only its owner can read the file', async () => {
    await using temporary = await openTemporaryStore()
    await withNamespace(temporary.store)
    const modes = await Promise.all(
      [temporary.path, `${temporary.path}-wal`].map(async (path) => (await stat(path)).mode & 0o777),
    )
    expect(modes).toEqual([0o600, 0o600])
  })

  test('a second store on the same file fails at once, and the first keeps working', async () => {
    await using temporary = await openTemporaryStore()
    await expect(createEmbeddedStore(temporary)).rejects.toMatchObject({ code: 'locked' })
    await withNamespace(temporary.store)
    // Another process also finds the file locked.
    const program = `new (require('node:sqlite').DatabaseSync)(process.argv[1]).exec('SELECT * FROM objects')`
    const other = promisify(execFile)(process.execPath, ['-e', program, temporary.path])
    await expect(other).rejects.toMatchObject({ stderr: expect.stringContaining('database is locked') as string })
    await temporary.store.close()
    await using again = await createEmbeddedStore(temporary)
    expect(await again.get(Namespace, { name: namespace })).toBeDefined()
  })

  test('a file of a newer layout is rejected', async () => {
    await using dir = await temporaryDir()
    new DatabaseSync(dir.path).exec('PRAGMA user_version = 2')
    await expect(createEmbeddedStore(dir)).rejects.toMatchObject({ code: 'newer_layout' })
  })

  test('a missing directory fails with unavailable', async () => {
    await expect(createEmbeddedStore({ path: '/nonexistent/state.db' })).rejects.toMatchObject({ code: 'unavailable' })
  })
})

describe('group commit', () => {
  test('concurrent writes share a transaction', async () => {
    await using temporary = await openTemporaryStore()
    const { store } = temporary
    await withNamespace(store)
    const before = store.transactions()
    const names = Array.from({ length: 200 }, (_, index) => `i${index}`)
    await Promise.all(names.map((name) => store.create(SharedInstance, instance({ namespace, name }))))
    expect(store.transactions() - before).toBe(1)
  })

  test('repeated concurrent writes keep sharing transactions', async () => {
    await using temporary = await openTemporaryStore()
    const { store } = temporary
    await withNamespace(store)
    const before = store.transactions()
    const writers = Array.from({ length: 50 }, async (_, index) => {
      const own = { namespace, name: `i${index}` }
      await store.create(SharedInstance, instance(own))
      for (let port = 1; port < 10; port += 1) await store.patchStatus(SharedInstance, own, { port })
    })
    await Promise.all(writers)
    expect(store.transactions() - before).toBeLessThan(50)
  })

  test('readers see a write only when it is durable, but later writes are based on it', async () => {
    await using temporary = await openTemporaryStore()
    const { store } = temporary
    await withNamespace(store)
    const creating = store.create(SharedInstance, instance(key))
    const patching = store.mergePatch(SharedInstance, key, { spec: { enabled: false } })
    expect(await store.get(SharedInstance, key)).toBeUndefined()
    expect((await creating).spec.enabled).toBe(true)
    expect((await patching).metadata.generation).toBe(2)
    expect(await store.get(SharedInstance, key)).toEqual(await patching)
  })

  test('a transaction does not block the event loop', async () => {
    await using temporary = await openTemporaryStore()
    let turns = 0
    const count = (): void => {
      turns += 1
      counting = setImmediate(count)
    }
    let counting = setImmediate(count)
    await withNamespace(temporary.store)
    clearImmediate(counting)
    expect(turns).toBeGreaterThan(0)
  })
})

describe('watches', () => {
  test('a watch without events yields bookmarks at the newest revision', async () => {
    await using temporary = await openTemporaryStore({ bookmarkMs: 1 })
    const { store } = temporary
    const signal = AbortSignal.timeout(60_000)
    const { resourceVersion } = await store.list(SharedInstance)
    await withNamespace(store)
    for await (const event of store.watch(SharedInstance, { resourceVersion, signal })) {
      expect(event).toEqual({ type: 'bookmark', resourceVersion: String(Number(resourceVersion) + 1) })
      break
    }
  })

  test('a reader whose position is dropped from the history gets gone', async () => {
    await using temporary = await openTemporaryStore({ history: 10 })
    const { store } = temporary
    await withNamespace(store)
    const { resourceVersion } = await store.list(SharedInstance)
    await using slow = reader(store, SharedInstance, { resourceVersion })
    await store.create(SharedInstance, instance(key))
    expect(await slow.take(1)).toEqual(['added a'])
    for (let port = 1; port <= 11; port += 1) await store.patchStatus(SharedInstance, key, { port })
    expect((await expectStoreError(slow.next())).code).toBe('gone')
    await using late = reader(store, SharedInstance, { resourceVersion })
    expect((await expectStoreError(late.next())).code).toBe('gone')
  })

  test.each(['999999', '', 'abc', '-1'])('a revision that is not of this store is gone: "%s"', async (resourceVersion) => {
    await using watch = reader(shared.store, SharedInstance, { resourceVersion })
    expect((await expectStoreError(watch.next())).code).toBe('gone')
  })
})

describe('closing', () => {
  test('close waits for accepted writes, ends watches and rejects new writes', async () => {
    await using dir = await temporaryDir()
    const store = await createEmbeddedStore(dir)
    const { resourceVersion } = await store.list(SharedInstance)
    const events = store.watch(SharedInstance, { resourceVersion, signal: new AbortController().signal })
    const watching = Array.fromAsync(events)
    const writing = withNamespace(store)
    await store.close()
    await writing
    expect(await watching).toEqual([])
    expect((await expectStoreError(withNamespace(store))).code).toBe('unavailable')
    await using again = await createEmbeddedStore(dir)
    expect(await again.get(Namespace, { name: namespace })).toBeDefined()
  })
})
