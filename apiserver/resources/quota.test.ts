import { expect, test } from 'vitest'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { sharedInstance } from '../../test/builders/shared-instance.ts'
import { createQuota } from './quota.ts'

const namespace = 'acme--prod'

/** Creates a quota of two over a cache with the given objects. */
function quotaOver(...names: string[]) {
  const list = () => names.map((name) => sharedInstance({ metadata: { name } }))
  const cache = { list } as unknown as Cache<typeof SharedInstance>
  return { names, quota: createQuota({ cache, max: 2, what: 'instances' }) }
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
