import { expect, test } from 'vitest'
import { Organization } from '../crds/organization.ts'
import { startCache, createScriptedStore } from '../test/support/store/caches.ts'
import { settle } from '../test/support/clocks.ts'
import { type Cache, createCache } from './cache.ts'
import { StoreCode, StoreError, keyToString, type Store } from './port.ts'

const revisionOf = (cache: Cache<typeof Organization>, name: string) => cache.get({ name })?.metadata.resourceVersion

test('the cache lists once, then watches', async () => {
  const scripted = createScriptedStore()
  scripted.put('a')
  await using running = startCache(scripted.store)
  await running.cache.synced()
  scripted.put('b')
  scripted.remove('a')
  await settle()
  expect(running.cache.list().map(({ metadata }) => metadata.name)).toEqual(['b'])
  expect(scripted.calls).toEqual({ lists: 1, watches: 1 })
})

test('a failed watch resumes at its last revision, and the cache lists again only when the revision is gone', async () => {
  const scripted = createScriptedStore()
  await using running = startCache(scripted.store)
  await running.cache.synced()
  await scripted.strike(new StoreError(StoreCode.unavailable, 'cut'))
  scripted.put('a')
  await running.clock.advance(1000)
  expect(revisionOf(running.cache, 'a')).toBe('11')
  expect(scripted.calls).toEqual({ lists: 1, watches: 2 })

  await scripted.strike('end')
  scripted.remove('a')
  scripted.compact()
  await running.clock.advance(1000)
  expect(running.cache.get({ name: 'a' })).toBeUndefined()
  expect(scripted.calls.lists).toBe(2)
})

test('a watch resumes after the last event or bookmark, never at an earlier revision', async () => {
  const scripted = createScriptedStore()
  await using running = startCache(scripted.store)
  await running.cache.synced()
  scripted.put('a')
  await settle()
  await scripted.strike('end')
  await running.clock.advance(1000)
  scripted.emit({ type: 'bookmark', resourceVersion: '15' })
  scripted.emit({ type: 'bookmark', resourceVersion: '3' })
  await settle()
  await scripted.strike('end')
  await running.clock.advance(1000)
  expect(scripted.watchedFrom).toEqual(['10', '11', '15'])
})

test('the cache lists again when a watch fails before its first event for an unknown reason', async () => {
  const scripted = createScriptedStore()
  await using running = startCache(scripted.store)
  await running.cache.synced()
  await scripted.strike(new StoreError(StoreCode.invalid, 'revision is in the future'))
  await running.clock.advance(100)
  expect(scripted.calls.lists).toBe(1)
  await scripted.strike(new StoreError(StoreCode.invalid, 'revision is in the future'))
  await running.clock.advance(1000)
  expect(scripted.calls.lists).toBe(2)
})

test('handlers are called for objects deleted while no watch was open', async () => {
  const scripted = createScriptedStore()
  scripted.put('stays')
  scripted.put('goes')
  await using running = startCache(scripted.store)
  await running.cache.synced()
  const changed: string[] = []
  running.cache.onChange((key) => changed.push(keyToString(key)))
  await scripted.strike('end')
  scripted.remove('goes')
  scripted.compact()
  await running.clock.advance(1000)
  expect(changed).toEqual(['goes'])
})

test('readers see the old state until the new list has arrived', async () => {
  const scripted = createScriptedStore()
  scripted.put('a')
  await using running = startCache(scripted.store)
  await running.cache.synced()
  scripted.broken.lists = 3
  await scripted.strike(new StoreError(StoreCode.gone, 'compacted'))
  scripted.remove('a')
  await running.clock.advance(100)
  expect(revisionOf(running.cache, 'a')).toBe('11')
  await running.clock.advance(10_000)
  expect(running.cache.get({ name: 'a' })).toBeUndefined()
})

test('the delay between attempts grows up to its maximum', async () => {
  const scripted = createScriptedStore()
  scripted.broken.lists = 1000
  await using running = startCache(scripted.store, { backoff: { baseMs: 100, maxMs: 1000 }, random: () => 1 })
  await running.clock.advance(100 + 200 + 400 + 800 + 1000 + 1000)
  expect(scripted.calls.lists).toBe(7)
})

test('the cache waits between watches that end at once', async () => {
  const scripted = createScriptedStore()
  const store = { ...scripted.store, watch: () => (scripted.calls.watches++, { [Symbol.asyncIterator]: () => nothing() }) }
  await using running = startCache(store, { backoff: { baseMs: 100, maxMs: 1000 } })
  await running.clock.advance(20_000)
  expect(scripted.calls.watches).toBeLessThan(40)
})

async function* nothing(): AsyncGenerator<never> {
  // Ends at once.
}

test('an error of a handler is reported and does not affect other handlers', async () => {
  const scripted = createScriptedStore()
  await using running = startCache(scripted.store)
  const boom = new Error('boom')
  const seen: string[] = []
  running.cache.onChange(() => {
    throw boom
  })
  const stop = running.cache.onChange(({ name }) => seen.push(name))
  await running.cache.synced()
  scripted.put('a')
  await settle()
  stop()
  scripted.put('b')
  await settle()
  expect(seen).toEqual(['a'])
  expect(running.errors).toEqual([boom, boom])
  expect(revisionOf(running.cache, 'b')).toBe('12')
})

test('lookups by uid, namespace, labels and index follow changes', async () => {
  const scripted = createScriptedStore()
  scripted.put('a')
  const byName = { name: ({ spec }: Organization) => [spec.name] }
  await using running = startCache(scripted.store, { indexes: byName })
  await running.cache.synced()
  expect(running.cache.byUid('uid-11')?.metadata.name).toBe('a')
  expect(running.cache.byIndex('name', 'a 11')).toHaveLength(1)
  scripted.put('a')
  await settle()
  expect(running.cache.byIndex('name', 'a 11')).toEqual([])
  expect(running.cache.byIndex('name', 'a 12')).toHaveLength(1)
  expect(running.cache.list({ namespace: 'elsewhere' })).toEqual([])
  expect(running.cache.list({ labels: { not: 'there' } })).toEqual([])
  expect(() => running.cache.byIndex('typo', '')).toThrow(TypeError)
})

test('run ends when its signal aborts, even while the list hangs', async () => {
  const stop = new AbortController()
  const cache = createCache({ store: { list: () => new Promise(() => undefined) } as unknown as Store, kind: Organization })
  const ended = cache.run(stop.signal)
  stop.abort()
  await expect(ended).resolves.toBeUndefined()
})
