import { expect, test } from 'vitest'
import type { Organization } from '../crds/organization.ts'
import { startCache, createScriptedStore } from '../test/support/store/caches.ts'
import { settle } from '../test/support/clocks.ts'

const never = new AbortController().signal

test('waitFor resolves at once when its condition holds, otherwise at the change that fulfils it', async () => {
  const scripted = createScriptedStore()
  scripted.put('a')
  await using running = startCache(scripted.store)
  await running.cache.synced()
  const wanted = (object: Organization | undefined) => object?.spec.name
  expect(await running.cache.waitFor({ name: 'a' }, wanted, never)).toBe('a 11')
  const later = running.cache.waitFor({ name: 'b' }, wanted, never)
  scripted.put('b')
  expect(await later).toBe('b 12')
})

test('waitFor resolves when an object is deleted', async () => {
  const scripted = createScriptedStore()
  scripted.put('a')
  await using running = startCache(scripted.store)
  await running.cache.synced()
  const gone = running.cache.waitFor({ name: 'a' }, (object) => object === undefined || undefined, never)
  scripted.remove('a')
  expect(await gone).toBe(true)
})

test('waitFor rejects with the reason of its signal, or with what the condition throws', async () => {
  const scripted = createScriptedStore()
  await using running = startCache(scripted.store)
  await running.cache.synced()
  const reason = new Error('too late')
  const stop = new AbortController()
  const aborting = running.cache.waitFor({ name: 'a' }, () => undefined, stop.signal)
  stop.abort(reason)
  await expect(aborting).rejects.toBe(reason)
  await expect(running.cache.waitFor({ name: 'a' }, () => undefined, stop.signal)).rejects.toBe(reason)
  const boom = new Error('boom')
  const throwing = running.cache.waitFor({ name: 'a' }, (object) => (object ? fail(boom) : undefined), never)
  scripted.put('a')
  await expect(throwing).rejects.toBe(boom)
})

function fail(error: Error): never {
  throw error
}

test('a change calls only the waiters of its key', async () => {
  const scripted = createScriptedStore()
  await using running = startCache(scripted.store)
  await running.cache.synced()
  let asked = 0
  const stop = new AbortController()
  const count = () => void (asked += 1)
  const waits = Array.from({ length: 2000 }, (_, i) => running.cache.waitFor({ name: `n${i}` }, count, stop.signal))
  asked = 0
  scripted.put('n7')
  await settle()
  expect(asked).toBe(1)
  stop.abort()
  expect(new Set((await Promise.allSettled(waits)).map(({ status }) => status))).toEqual(new Set(['rejected']))
})
