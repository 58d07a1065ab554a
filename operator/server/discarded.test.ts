import { Registry } from 'prom-client'
import { expect, test, vi } from 'vitest'
import { DatabaseServer } from '../../crds/database-server.ts'
import { databaseServer } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { createDiscarded, ownerOf } from './discarded.ts'

const [first, second] = ['first', 'second'].map((name) => databaseServer({ metadata: { name } }))

test('discarded databases are counted by server and, over all servers, by namespace, until their server is gone', async () => {
  if (!first || !second) throw new Error('there are two servers')
  const servers = settableCache(DatabaseServer)
  servers.put(first, second)
  const registry = new Registry()
  const discarded = createDiscarded({ servers: servers.cache, registry })
  const removed = vi.fn<() => void>()
  discarded.onRemoval(removed)
  const [own, other] = [ownerOf(first, 'acme--prod'), ownerOf(second, 'acme--prod')]
  expect(own).toMatch(/^[0-9a-f]{8}$/)
  expect(own).not.toBe(other)
  discarded.record('first', [own, own, 'ffffffff'])
  discarded.record('second', [other, own])
  expect([discarded.countOn('first'), discarded.countOn('second'), discarded.countOn('third')]).toEqual([3, 2, 0])
  expect([discarded.countIn('acme--prod'), discarded.countIn('acme--test')]).toEqual([3, 0])
  expect(removed).not.toHaveBeenCalled()
  discarded.record('first', [own])
  expect(removed).toHaveBeenCalledTimes(1)
  expect(await registry.metrics()).toContain('mooring_discarded_databases 3')
  servers.remove(second)
  expect(discarded.countIn('acme--prod')).toBe(1)
  expect(await registry.metrics()).toContain('mooring_discarded_databases 1')
})
