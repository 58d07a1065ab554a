import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { createCache } from '../../store/cache.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { StoreError, type Store } from '../../store/port.ts'
import { openSnapshot } from './snapshot.ts'

const log = pino({ level: 'silent' })
const soon = { timeout: 60_000, interval: 5 }
const away = () => Promise.reject(new StoreError('unavailable', 'away'))

/** Store of tunnels whose API a test may switch off, and a directory that outlives each edge. */
async function setUp() {
  const temporary = await openTemporaryStore()
  const directory = await mkdtemp(join(tmpdir(), 'mooring-snapshot-'))
  const snapshots = new AsyncDisposableStack()
  onTestFinished(async () => {
    await snapshots.disposeAsync()
    await temporary[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  })
  const { store } = temporary
  await store.create(Namespace, { metadata: { name: 'acme--prod' } })
  const state = { away: false }
  const reached: Store = {
    ...store,
    get: (...args) => (state.away ? away() : store.get(...args)),
    list: (...args) => (state.away ? away() : store.list(...args)),
    async *watch(kind, options) {
      const gone = new AbortController()
      const timer = setInterval(() => state.away && gone.abort(), 5)
      try {
        if (!state.away) yield* store.watch(kind, { ...options, signal: AbortSignal.any([options.signal, gone.signal]) })
        if (!options.signal.aborted) await away()
      } finally {
        clearInterval(timer)
      }
    },
  }

  /** Opens the snapshot, whose file is closed after the test. */
  const opened = async (endpoint = 'main') =>
    snapshots.use(await openSnapshot({ store: reached, endpoint, directory, log, everyMs: 5 }))

  /** State that an edge of the endpoint reads; it ends as a killed process. */
  async function edge(endpoint = 'main') {
    const snapshot = await opened(endpoint)
    const stop = new AbortController()
    const backoff = { baseMs: 5, maxMs: 20 }
    const cache = createCache({ store: snapshot.store, kind: Tunnel, backoff })
    const work = cache.run(stop.signal)
    await cache.synced()
    return {
      snapshot,
      cache,
      names: () =>
        cache
          .list()
          .map(({ metadata }) => metadata.name)
          .sort(),
      async stop() {
        await snapshot.flush()
        stop.abort()
        await work
      },
    }
  }

  async function tunnel(name: string, endpoint = 'main') {
    const key = { namespace: 'acme--prod', name }
    await store.create(Tunnel, { metadata: key, spec: { regionId: 1 } })
    await store.patchStatus(Tunnel, key, { hostname: '0123456789abcdef', endpointRef: { name: endpoint } })
    return key
  }

  return { store, state, opened, edge, tunnel, file: () => readFile(join(directory, 'snapshot'), 'utf8') }
}

test('an edge that starts without the API has the state of the previous process, and catches up afterwards', async () => {
  const { store, state, edge, tunnel } = await setUp()
  await tunnel('stays')
  const goes = await tunnel('goes')
  const first = await edge()
  await vi.waitFor(() => expect(first.names()).toEqual(['goes', 'stays']), soon)
  await first.stop()

  state.away = true
  await store.delete(Tunnel, goes)
  await tunnel('comes')
  const second = await edge()
  expect(second.names()).toEqual(['goes', 'stays'])
  expect(second.cache.get({ namespace: 'acme--prod', name: 'stays' })).toMatchObject({
    spec: { regionId: 1 },
    status: { hostname: '0123456789abcdef', endpointRef: { name: 'main' } },
  })
  state.away = false
  await vi.waitFor(() => expect(second.names()).toEqual(['comes', 'stays']), soon)
  await second.stop()
})

test('a snapshot catches up from a new list when the events since then are no longer available', async () => {
  const { store, state, edge, tunnel } = await setUp()
  const goes = await tunnel('goes')
  const first = await edge()
  await first.stop()
  state.away = true
  await store.delete(Tunnel, goes)
  await tunnel('comes')
  store.compact()
  const second = await edge()
  expect(second.names()).toEqual(['goes'])
  state.away = false
  await vi.waitFor(() => expect(second.names()).toEqual(['comes']), soon)
  await second.stop()
})

test('the snapshot is not used while the API answers', async () => {
  const { store, edge, tunnel } = await setUp()
  const goes = await tunnel('goes')
  await (await edge()).stop()
  await store.delete(Tunnel, goes)
  const second = await edge()
  expect(second.names()).toEqual([])
  await second.stop()
})

test('the previous state of a kind is kept until the API has listed that kind', async () => {
  const { state, edge, tunnel, opened } = await setUp()
  for (const name of ['one', 'two']) await tunnel(name)
  await (await edge()).stop()

  // Killed when it had read only this.
  const second = await opened()
  await second.store.list(TunnelEndpoint)
  await second.flush()
  state.away = true
  const { items } = await (await opened()).store.list(Tunnel)
  expect(items.map(({ metadata }) => metadata.name).sort()).toEqual(['one', 'two'])
})

test('an edge that starts without the API from the snapshot of an older version has no databases until the API answers', async () => {
  const { state, edge, tunnel, opened } = await setUp()
  await tunnel('one')
  state.away = true
  await expect((await opened()).store.list(DedicatedDatabase)).rejects.toThrow('away')
  state.away = false
  // Lists no databases, as an older version.
  await (await edge()).stop()
  state.away = true
  for (let start = 0; start < 2; start++) {
    const later = await opened()
    expect(await later.store.list(DedicatedDatabase)).toMatchObject({ items: [], resourceVersion: '' })
    expect((await later.store.list(Tunnel)).items).toHaveLength(1)
    await later.flush()
  }
})

test('objects that the first list does not contain are removed from the snapshot', async () => {
  const { store, state, edge, tunnel, opened } = await setUp()
  await tunnel('stays')
  const goes = await tunnel('goes')
  const moves = await tunnel('moves')
  await (await edge()).stop()
  await store.delete(Tunnel, goes)
  await store.patchStatus(Tunnel, moves, { endpointRef: { name: 'other' } })
  const second = await opened()
  for (const kind of [TunnelEndpoint, Tunnel]) {
    await second.store.list<typeof TunnelEndpoint | typeof Tunnel>(kind)
    await second.flush()
  }
  state.away = true
  const third = await edge()
  expect(third.names()).toEqual(['stays'])
  await third.stop()
})

test('tunnels of other endpoints and unused fields are not stored', async () => {
  const { store, edge, tunnel, file } = await setUp()
  const key = await tunnel('mine')
  await tunnel('theirs', 'other')
  const first = await edge()
  await first.snapshot.flush()
  const before = await file()
  expect(before).toContain('mine')
  expect(before).not.toContain('theirs')
  await store.patchStatus(Tunnel, key, { connected: true, sessions: 1 })
  await vi.waitFor(() => expect(first.cache.get(key)?.status?.connected).toBe(true), soon)
  await first.snapshot.flush()
  const added = (await file()).slice(before.length)
  expect(added).not.toContain('mine')
  await first.stop()
})

test('certificates are restored until they are deleted', async () => {
  const { edge } = await setUp()
  const pem = { certificate: 'certificate', key: 'key', obtainedAt: '2030-01-01T00:00:00Z' }
  const first = await edge()
  first.snapshot.pems.keep('a', pem)
  first.snapshot.pems.keep('b', pem)
  first.snapshot.pems.keep('b', undefined)
  await first.stop()
  const second = await edge()
  expect([...second.snapshot.pems.all()]).toEqual([['a', pem]])
  await second.stop()
  const other = await edge('other')
  expect([...other.snapshot.pems.all()]).toEqual([])
  await other.stop()
})
