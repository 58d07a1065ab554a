import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, describe } from 'vitest'
import fc from 'fast-check'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { sharedInstance } from '../../test/builders/resources.ts'
import { createCreationQuota, createOnce, objectName, parseIdempotencyKey, requestHash } from './creations.ts'
import { FINALIZER } from '../../crds/names.ts'
import { Organization } from '../../crds/organization.ts'
import { createEmbeddedStore } from '../../store/embedded.ts'

const namespace = 'acme--prod'

/** Creates a quota of two over a cache with the given objects. */
function quotaOver(...names: string[]) {
  const list = () => names.map((name) => sharedInstance({ metadata: { name } }))
  const cache = { list } as unknown as Cache<typeof SharedInstance>
  return { names, quota: createCreationQuota({ cache, max: 2, what: 'instances' }) }
}

const exceeded = expect.objectContaining({ code: 'quota_exceeded' }) as Error

test('existing objects count', () => {
  const { quota } = quotaOver('a', 'b')
  expect(() => quota.reserve({ namespace, name: 'c' })).toThrow(exceeded)
})

test('objects being created count', () => {
  const { quota } = quotaOver('a')
  quota.reserve({ namespace, name: 'b' })
  expect(() => quota.reserve({ namespace, name: 'c' })).toThrow(exceeded)
})

test('an existing object that is being created counts once', () => {
  const { quota, names } = quotaOver()
  quota.reserve({ namespace, name: 'a' })
  names.push('a')
  expect(() => quota.reserve({ namespace, name: 'b' })).not.toThrow()
})

test('a repeated request is never rejected because of the first one', () => {
  const { quota } = quotaOver('a', 'b')
  expect(() => quota.reserve({ namespace, name: 'b' })).not.toThrow()
})

test('a slot is free again after a failed creation', () => {
  const { quota } = quotaOver('a')
  quota.reserve({ namespace, name: 'b' })[Symbol.dispose]()
  expect(() => quota.reserve({ namespace, name: 'c' })).not.toThrow()
})

test('a slot stays reserved while one of two requests for it runs', () => {
  const { quota } = quotaOver('a')
  quota.reserve({ namespace, name: 'b' })
  quota.reserve({ namespace, name: 'b' })[Symbol.dispose]()
  expect(() => quota.reserve({ namespace, name: 'c' })).toThrow(exceeded)
})

const owner = { namespace: 'acme--prod', user: 'local:alice', key: 'k1' }

/** Opens a store for one test, removed at its end. */
async function openStore() {
  const directory = await mkdtemp(join(tmpdir(), 'mooring-idempotency-'))
  const store = await createEmbeddedStore({ path: join(directory, 'state.db') })
  const dispose = async () => {
    await store.close()
    await rm(directory, { recursive: true })
  }
  return { store, [Symbol.asyncDispose]: dispose }
}

const draft = (finalizers: readonly string[] = []) => ({
  metadata: { name: objectName('o', owner), finalizers },
  spec: { name: 'Acme' },
})

describe('the name of an object', () => {
  test('is a function of namespace, caller and key', () => {
    expect(objectName('i', owner)).toMatch(/^i-[0-9a-f]{32}$/)
    expect(objectName('i', { ...owner })).toBe(objectName('i', owner))
    for (const other of [{ namespace: 'acme--test' }, { user: 'local:bob' }, { key: 'k2' }]) {
      expect(objectName('i', { ...owner, ...other })).not.toBe(objectName('i', owner))
    }
  })

  test('is random without a key', () => {
    expect(objectName('i', { ...owner, key: undefined })).not.toBe(objectName('i', { ...owner, key: undefined }))
  })

  test('depends on the boundaries of its parts', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string({ minLength: 1 }), (a, b, c) => {
        const left = objectName('i', { namespace: a + c, user: b, key: 'k' })
        expect(left).not.toBe(objectName('i', { namespace: a, user: c + b, key: 'k' }))
      }),
    )
  })
})

test('the hash of a body depends on everything except the order of keys', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      expect(requestHash({ a, b })).toBe(requestHash({ b, a }))
      expect(requestHash(structuredClone(a))).toBe(requestHash(a))
    }),
  )
  expect(requestHash({ a: [1, 2] })).not.toBe(requestHash({ a: [2, 1] }))
  expect(requestHash({ a: '1' })).not.toBe(requestHash({ a: 1 }))
  expect(requestHash({ a: undefined })).toBe(requestHash({}))
})

test.each(['', 'a b', 'ä', 'a\u0000', 'x'.repeat(256)])('the key "%s" is rejected', (key) => {
  expect(() => parseIdempotencyKey(key)).toThrow('Idempotency-Key')
})

describe('creating once', () => {
  test('creates one object for many simultaneous requests', async () => {
    await using opened = await openStore()
    const results = await Promise.all([1, 2, 3, 4].map(() => createOnce(opened.store, Organization, draft(), 'hash')))
    expect(results.filter(({ created }) => created)).toHaveLength(1)
    expect(new Set(results.map(({ object }) => object.metadata.uid)).size).toBe(1)
  })

  test('rejects the key with another body', async () => {
    await using opened = await openStore()
    await createOnce(opened.store, Organization, draft(), 'hash')
    await expect(createOnce(opened.store, Organization, draft(), 'other')).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    })
  })

  test('rejects the key while the object is being deleted, and creates a new one once it is gone', async () => {
    await using opened = await openStore()
    const { store } = opened
    const { object } = await createOnce(store, Organization, draft([FINALIZER]), 'hash')
    await store.delete(Organization, object.metadata)
    await expect(createOnce(store, Organization, draft(), 'hash')).rejects.toMatchObject({ code: 'conflict' })
    await store.mergePatch(Organization, object.metadata, { metadata: { finalizers: [] } })
    const again = await createOnce(store, Organization, draft(), 'other')
    expect(again.created).toBe(true)
    expect(again.object.metadata.uid).not.toBe(object.metadata.uid)
  })
})
