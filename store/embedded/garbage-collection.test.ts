import { expect, test, vi } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { StoreError } from '../port.ts'
import { createGarbageCollector } from './garbage-collection.ts'
import { type Stored, Table } from './table.ts'

const owner = { apiVersion: 'v1', kind: 'Secret', name: 'owner', uid: 'gone' }
function orphanOf(ownerReferences: Stored['metadata']['ownerReferences']): Stored {
  const system = { uid: '1', resourceVersion: '1', generation: 1, creationTimestamp: '2030-01-01T00:00:00Z' }
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'ns', name: 'orphan', ...system, ...(ownerReferences && { ownerReferences }) },
  }
}

/** Garbage collector whose first `failures` deletions fail with `error`. */
function collectorOver(object: Stored, failures: number, error = new Error('not expected')) {
  const table = new Table()
  table.put(Secret, object)
  const tried: string[] = []
  const errors: unknown[] = []
  const collector = createGarbageCollector({
    kinds: [Secret],
    head: () => table,
    delete(kind, key) {
      tried.push(key.name)
      if (tried.length <= failures) return Promise.reject(error)
      table.remove(kind, key)
      return Promise.resolve()
    },
    patch: () => Promise.reject(new Error('not expected')),
    removeNamespace: () => Promise.reject(new Error('not expected')),
    retryMs: 1,
    onError: (each) => errors.push(each),
  })
  const observe = (): void => collector.observe([{ kind: Secret, type: 'added', object, previous: undefined, revision: 1 }])
  return { collector, observe, tried, errors, isGone: () => table.list(Secret).length === 0 }
}

test.each([
  { what: 'fails because the store is unavailable', error: new StoreError('unavailable', 'disk full'), reported: 0 },
  { what: 'fails for an unknown reason', error: new TypeError('a defect'), reported: 3 },
])('a deletion that $what is retried until it succeeds', async ({ error, reported }) => {
  const { collector, observe, tried, errors, isGone } = collectorOver(orphanOf([owner]), 3, error)
  observe()
  await vi.waitFor(
    () => {
      expect(isGone()).toBe(true)
    },
    { timeout: 60_000 },
  )
  await collector.close()
  expect([tried.length, errors.length]).toEqual([4, reported])
})

test.each([
  { does: 'an object without owner is not deleted', owners: undefined },
  {
    does: 'an object whose owner is of an unknown kind is not deleted',
    owners: [{ ...owner, apiVersion: 'apps/v1', kind: 'Deployment' }],
  },
])('$does', async ({ owners }) => {
  const { collector, observe, tried } = collectorOver(orphanOf(owners), 0)
  observe()
  await collector.close()
  expect(tried).toEqual([])
})

test('after close, no deletion is retried', async () => {
  const { collector, observe, tried } = collectorOver(orphanOf([owner]), 100, new StoreError('unavailable', 'disk full'))
  observe()
  await collector.close()
  const before = tried.length
  observe()
  await collector.close()
  expect(tried.length).toBe(before)
})
