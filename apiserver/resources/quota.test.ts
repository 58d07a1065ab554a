import { expect, test } from 'vitest'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { sharedInstance } from '../../test/builders/shared-instance.ts'
import { createQuota } from './quota.ts'

const namespace = 'acme--prod'

/** A quota of two over a cache with these objects. */
function quotaOver(...names: string[]) {
  const list = () => names.map((name) => sharedInstance({ metadata: { name } }))
  const cache = { list } as unknown as Cache<typeof SharedInstance>
  return { names, quota: createQuota({ cache, max: 2, what: 'instances' }) }
}

const exceeded = expect.objectContaining({ code: 'quota_exceeded' }) as Error

test('what is there counts', () => {
  const { quota } = quotaOver('a', 'b')
  expect(() => quota.reserve({ namespace, name: 'c' })).toThrow(exceeded)
})

test('what is under way counts', () => {
  const { quota } = quotaOver('a')
  quota.reserve({ namespace, name: 'b' })
  expect(() => quota.reserve({ namespace, name: 'c' })).toThrow(exceeded)
})

test('what is there and under way at once counts once', () => {
  const { quota, names } = quotaOver()
  quota.reserve({ namespace, name: 'a' })
  names.push('a')
  expect(() => quota.reserve({ namespace, name: 'b' })).not.toThrow()
})

test('a repeated request is never refused for its own first one', () => {
  const { quota } = quotaOver('a', 'b')
  expect(() => quota.reserve({ namespace, name: 'b' })).not.toThrow()
})

test('a place is free again when its creation failed', () => {
  const { quota } = quotaOver('a')
  quota.reserve({ namespace, name: 'b' })[Symbol.dispose]()
  expect(() => quota.reserve({ namespace, name: 'c' })).not.toThrow()
})

test('a place is kept while one of two requests for it goes on', () => {
  const { quota } = quotaOver('a')
  quota.reserve({ namespace, name: 'b' })
  quota.reserve({ namespace, name: 'b' })[Symbol.dispose]()
  expect(() => quota.reserve({ namespace, name: 'c' })).toThrow(exceeded)
})
