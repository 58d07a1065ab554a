import { expect, test } from 'vitest'
import { DatabaseServer } from '../../crds/database-server.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { databaseServer, readyCondition, sharedInstance } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { instanceIndexes } from './indexes.ts'
import { createSlots, createSuspicions } from './slots.ts'

const server = (name: string, traits: Parameters<typeof databaseServer>[0] = {}) =>
  databaseServer({ ...traits, metadata: { name, ...traits.metadata } })
const named = (name: string, on?: string): SharedInstance =>
  sharedInstance({ metadata: { name, uid: `uid-of-${name}` }, ...(on && { status: { serverRef: { name: on } } }) })

/** Slots over servers, and over instances by the name of their server, if any. */
function observed(servers: readonly DatabaseServer[], instances: readonly SharedInstance[]) {
  const [serverCache, instanceCache] = [settableCache(DatabaseServer), settableCache(SharedInstance, instanceIndexes)]
  serverCache.put(...servers)
  instanceCache.put(...instances)
  return { slots: createSlots({ servers: serverCache.cache, instances: instanceCache.cache }), instances: instanceCache }
}

const down = { conditions: [readyCondition('False', 'Crashed')] }

test.each([
  { does: 'takes the fullest server with a free slot', servers: [server('a'), server('b')], living: ['b'], chosen: 'b' },
  { does: 'takes the first by name among equals', servers: [server('b'), server('a')], living: [], chosen: 'a' },
  { does: 'skips a full server', servers: [server('a'), server('b')], living: ['a', 'a'], chosen: 'b' },
  { does: 'skips a server that is down', servers: [server('a', { status: down }), server('b')], living: [], chosen: 'b' },
  {
    does: 'skips a server that is being deleted',
    servers: [server('a', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })],
    living: [],
    chosen: undefined,
  },
  { does: 'skips a server of another motor', servers: [server('a', { spec: { motor: 'postgresql-14.4.0' } })], living: [] },
  { does: 'skips a server of another region', servers: [server('a', { spec: { region: crypto.randomUUID() } })], living: [] },
  { does: 'skips a dedicated server', servers: [server('a', { spec: { tenancy: 'dedicated' } })], living: [] },
])('$does', ({ servers, living, chosen }) => {
  const newcomer = named('new')
  const { slots } = observed(servers, [newcomer, ...living.map((on, index) => named(`old-${index}`, on))])
  expect(slots.choose(newcomer)?.metadata.name).toBe(chosen)
})

test('a slot is reserved from the choice until the status records it, and counted once', () => {
  const a = server('a')
  const [first, second, third] = [named('first'), named('second'), named('third')]
  const { slots, instances } = observed([a], [first, second, third])
  expect(slots.choose(first)).toBe(a)
  expect(slots.choose(first)).toBe(a)
  expect(slots.freeOn(a)).toBe(1)

  instances.remove(first)
  instances.put(named('first', 'a'))
  expect(slots.freeOn(a)).toBe(1)
  slots.release(first.metadata.uid)
  expect(slots.freeOn(a)).toBe(1)

  expect(slots.choose(second)).toBe(a)
  expect(slots.choose(third)).toBeUndefined()
  slots.release(second.metadata.uid)
  expect(slots.choose(third)).toBe(a)
})

test('a slot of an instance that was deleted unnoticed is free again', () => {
  const a = server('a')
  const gone = named('gone')
  const { slots, instances } = observed([a], [gone])
  slots.hold(gone.metadata.uid, 'a')
  expect([slots.has(gone.metadata.uid), slots.freeOn(a)]).toEqual([true, 1])
  instances.remove(gone)
  expect([slots.freeOn(a), slots.has(gone.metadata.uid)]).toEqual([2, false])
})

test('prune forgets deleted instances', () => {
  const suspicions = createSuspicions()
  for (const uid of ['stays', 'went']) {
    suspicions.oversize.add(uid)
    suspicions.missing.add(uid)
  }
  suspicions.prune((uid) => uid === 'stays')
  expect([[...suspicions.oversize], [...suspicions.missing]]).toEqual([['stays'], ['stays']])
})

test('discarded databases take slots, and do not keep a server from being empty', () => {
  const servers = settableCache(DatabaseServer)
  servers.put(server('a'))
  const slots = createSlots({
    ...{ servers: servers.cache, instances: settableCache(SharedInstance, instanceIndexes).cache },
    discarded: { countOn: (name) => (name === 'a' ? 2 : 0) },
  })
  expect(slots.freeOn(server('a'))).toBe(0)
  expect(slots.choose(named('new'))).toBeUndefined()
  expect(slots.isEmpty(server('a'))).toBe(true)
})
