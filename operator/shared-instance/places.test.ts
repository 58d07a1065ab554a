import { expect, test } from 'vitest'
import { DatabaseServer } from '../../crds/database-server.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { databaseServer } from '../../test/builders/database-server.ts'
import { readyCondition, sharedInstance } from '../../test/builders/shared-instance.ts'
import { settableCache } from '../../test/support/store/settable-cache.ts'
import { instanceIndexes } from './indexes.ts'
import { createPlaces } from './places.ts'

const server = (name: string, traits: Parameters<typeof databaseServer>[0] = {}) =>
  databaseServer({ ...traits, metadata: { name, ...traits.metadata } })
const named = (name: string, on?: string): SharedInstance =>
  sharedInstance({ metadata: { name, uid: `uid-of-${name}` }, ...(on && { status: { serverRef: { name: on } } }) })

/** Servers, and instances by name with the server they live on, if any. */
function observed(servers: readonly DatabaseServer[], instances: readonly SharedInstance[]) {
  const [serverCache, instanceCache] = [settableCache(DatabaseServer), settableCache(SharedInstance, instanceIndexes)]
  serverCache.put(...servers)
  instanceCache.put(...instances)
  return { places: createPlaces({ servers: serverCache.cache, instances: instanceCache.cache }), instances: instanceCache }
}

const down = { conditions: [readyCondition('False', 'Crashed')] }

test.each([
  { does: 'takes the fullest of those with room', servers: [server('a'), server('b')], living: ['b'], chosen: 'b' },
  { does: 'takes the first by name among equals', servers: [server('b'), server('a')], living: [], chosen: 'a' },
  { does: 'passes over a full one', servers: [server('a'), server('b')], living: ['a', 'a'], chosen: 'b' },
  { does: 'passes over one that is down', servers: [server('a', { status: down }), server('b')], living: [], chosen: 'b' },
  {
    does: 'passes over one that is going',
    servers: [server('a', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })],
    living: [],
    chosen: undefined,
  },
  { does: 'passes over one of another motor', servers: [server('a', { spec: { motor: 'postgresql-14.4.0' } })], living: [] },
  { does: 'passes over one of another region', servers: [server('a', { spec: { region: crypto.randomUUID() } })], living: [] },
  { does: 'passes over one that is somebody’s own', servers: [server('a', { spec: { tenancy: 'dedicated' } })], living: [] },
])('$does', ({ servers, living, chosen }) => {
  const newcomer = named('new')
  const { places } = observed(servers, [newcomer, ...living.map((on, index) => named(`old-${index}`, on))])
  expect(places.choose(newcomer)?.metadata.name).toBe(chosen)
})

test('a place is held from the choice until the status tells of it, and counted once', () => {
  const a = server('a')
  const [first, second, third] = [named('first'), named('second'), named('third')]
  const { places, instances } = observed([a], [first, second, third])
  expect(places.choose(first)).toBe(a)
  expect(places.choose(first)).toBe(a)
  expect(places.freeOn(a)).toBe(1)

  instances.remove(first)
  instances.put(named('first', 'a'))
  expect(places.freeOn(a)).toBe(1)
  places.release(first.metadata.uid)
  expect(places.freeOn(a)).toBe(1)

  expect(places.choose(second)).toBe(a)
  expect(places.choose(third)).toBeUndefined()
  places.release(second.metadata.uid)
  expect(places.choose(third)).toBe(a)
})

test('a place held for an instance that went without a word is free again', () => {
  const a = server('a')
  const gone = named('gone')
  const { places, instances } = observed([a], [gone])
  places.hold(gone.metadata.uid, 'a')
  expect([places.has(gone.metadata.uid), places.freeOn(a)]).toEqual([true, 1])
  instances.remove(gone)
  expect([places.freeOn(a), places.has(gone.metadata.uid)]).toEqual([2, false])
})
