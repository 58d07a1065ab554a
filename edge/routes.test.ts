import { expect, test, vi } from 'vitest'
import fc from 'fast-check'
import { Namespace } from '../crds/core.ts'
import type { DraftMeta } from '../crds/kind.ts'
import { Tunnel } from '../crds/tunnel.ts'
import { TunnelConfig } from '../crds/tunnel-config.ts'
import { PASSWORD_LIFE_MS, TunnelPassword } from '../crds/tunnel-password.ts'
import { createCacheSet } from '../store/cache.ts'
import { openTemporaryStore } from '../test/support/store/temporary-store.ts'
import type { Store } from '../store/port.ts'
import { settableClock } from '../test/support/clocks.ts'
import { KeyIndex } from './key-index.ts'
import { createRoutes, routedPasswordIndexes } from './routes.ts'

const NAMESPACE = 'acme--prod'
const HOSTNAME = '0123456789abcdef'
const OTHER = 'fedcba9876543210'
const web = { namespace: NAMESPACE, name: 'web' }
const key = { namespace: NAMESPACE, name: 'p' }
const SHA256 = 'a'.repeat(64)
const HOUR_MS = 3_600_000
const soon = { timeout: 60_000, interval: 10 }
const assigned = (hostname: string, endpoint = 'mine') => ({ hostname, endpointRef: { name: endpoint } })

/** Routes of the endpoint `mine` over a real store, and the hostnames that listeners got. */
async function start(prepare: (store: Store) => Promise<unknown> = () => Promise.resolve()) {
  const { store, ...temporary } = await openTemporaryStore()
  await store.create(Namespace, { metadata: { name: NAMESPACE } })
  await prepare(store)
  const errors: unknown[] = []
  const onError = (error: unknown) => void errors.push(error)
  const set = createCacheSet({ store, onError })
  const tunnels = set.cached(Tunnel)
  const passwords = set.cached(TunnelPassword, routedPasswordIndexes)
  const stop = new AbortController()
  const work = set.run(stop.signal)
  await set.synced()
  const clock = settableClock()
  const routes = createRoutes({ endpoint: 'mine', domain: 'tunnel.test', tunnels, passwords, onError, date: clock.date })
  const told: string[] = []
  routes.onChange((hostname) => told.push(hostname))

  /** Runs an action and waits for the caches. @returns the hostnames that listeners got */
  async function after(change: () => Promise<unknown>): Promise<readonly string[]> {
    told.length = 0
    await change()
    const probe = { namespace: NAMESPACE, name: `probe-${Math.random().toString(36).slice(2)}` }
    for (const [kind, cache, spec] of [
      [Tunnel, tunnels, { regionId: 1 }],
      [TunnelPassword, passwords, { tunnelRef: { name: 'none' }, sha256: SHA256, expiresAt: '2030-01-01T00:00:00Z' }],
    ] as const) {
      await store.create<typeof Tunnel | typeof TunnelPassword>(kind, { metadata: probe, spec } as never)
      await cache.waitFor(probe, (found) => found && { found }, stop.signal)
    }
    return [...told]
  }

  return {
    ...{ store, routes, errors, after, clock, told },
    async [Symbol.asyncDispose]() {
      routes[Symbol.dispose]()
      stop.abort()
      await work
      await temporary[Symbol.asyncDispose]()
    },
  }
}

async function makeTunnel(store: Store, status: object = assigned(HOSTNAME), spec: object = {}): Promise<void> {
  await store.create(Tunnel, { metadata: { ...web, finalizers: ['mooring.dev/test'] }, spec: { regionId: 1, ...spec } })
  await store.patchStatus(Tunnel, web, status)
}
const makePassword = (store: Store, metadata: DraftMeta = key) =>
  store.create(TunnelPassword, {
    metadata,
    spec: { tunnelRef: { name: 'web' }, sha256: SHA256, expiresAt: '2030-01-01T00:00:00Z' },
  })

test('tunnels that exist at the start are served at once', async () => {
  await using at = await start(async (store) => {
    await makeTunnel(store)
    await makePassword(store)
  })
  const { routes } = at
  const { creationTimestamp = '' } = (await at.store.get(TunnelPassword, key))?.metadata ?? {}
  expect(routes.get(HOSTNAME)).toMatchObject({
    ...{ namespace: NAMESPACE, name: 'web', hostname: HOSTNAME, host: `${HOSTNAME}.tunnel.test` },
    ...{ url: `https://${HOSTNAME}.tunnel.test`, config: TunnelConfig.parse({}) },
    passwords: [{ sha256: SHA256, expiresAt: Date.parse(creationTimestamp) + PASSWORD_LIFE_MS }],
  })
  expect(routes.ofPassword(SHA256)?.hostname).toBe(HOSTNAME)
  expect(routes.ofPassword('b'.repeat(64))).toBeUndefined()
})

type Step = (store: Store) => Promise<unknown>
const patch =
  (config: object): Step =>
  (store) =>
    store.mergePatch(Tunnel, web, { spec: { config } })

test.each<{ does: string; first?: Step; change: Step; told: readonly string[]; served: readonly string[] }>([
  { does: 'a tunnel without a hostname is not served', change: (store) => makeTunnel(store, {}), told: [], served: [] },
  {
    does: 'a tunnel of another endpoint is not served',
    change: (store) => makeTunnel(store, assigned(HOSTNAME, 'another')),
    ...{ told: [], served: [] },
  },
  { does: 'an assigned tunnel is served', change: makeTunnel, told: [HOSTNAME], served: [HOSTNAME] },
  {
    does: 'a change of the config notifies listeners',
    ...{ first: makeTunnel, change: patch({ httpsOnly: true }), told: [HOSTNAME], served: [HOSTNAME] },
  },
  {
    does: 'a new hostname replaces the first',
    ...{ first: makeTunnel, change: (store) => store.patchStatus(Tunnel, web, { hostname: OTHER }) },
    ...{ told: [HOSTNAME, OTHER], served: [OTHER] },
  },
  {
    does: 'a tunnel is not served during its deletion',
    ...{ first: makeTunnel, change: (store) => store.delete(Tunnel, web), told: [HOSTNAME], served: [] },
  },
  {
    does: 'a new password is a change of its tunnel',
    ...{ first: makeTunnel, change: makePassword, told: [HOSTNAME], served: [HOSTNAME] },
  },
])('$does', async ({ first, change, told, served }) => {
  await using at = await start(first)
  expect([...new Set(await at.after(() => change(at.store)))].slice(-told.length || undefined)).toEqual(told)
  expect([HOSTNAME, OTHER].filter((hostname) => at.routes.get(hostname))).toEqual(served)
})

test('a tunnel is served until it expires, and again when the clock is set back or its expiry is extended', async () => {
  await using at = await start()
  const { routes, clock, told, store } = at
  const expiresAt = new Date(clock.date() + HOUR_MS).toISOString()
  await at.after(async () => {
    await makeTunnel(store, assigned(HOSTNAME), { expiresAt })
    await makePassword(store)
  })
  expect(routes.get(HOSTNAME)?.name).toBe('web')
  told.length = 0
  for (const [ms, isServed] of [
    [HOUR_MS, false],
    [-1, true],
    [1, false],
  ] as const) {
    clock.step(ms)
    await vi.waitFor(() => expect(routes.get(HOSTNAME) !== undefined).toBe(isServed), soon)
    expect(routes.ofPassword(SHA256) !== undefined).toBe(isServed)
  }
  expect(told).toEqual([HOSTNAME, HOSTNAME, HOSTNAME])
  await at.after(() => store.mergePatch(Tunnel, web, { spec: { expiresAt: new Date(clock.date() + 1).toISOString() } }))
  expect(routes.get(HOSTNAME)?.name).toBe('web')
})

test('a tunnel that expired before the start is not served', async () => {
  await using at = await start((store) => makeTunnel(store, assigned(HOSTNAME), { expiresAt: '2020-01-01T00:00:00Z' }))
  expect([...at.routes.tunnels.hostnames()]).toEqual([])
})

test('a deleted password is a change of its tunnel, which no longer has it', async () => {
  await using at = await start(async (store) => {
    await makeTunnel(store)
    await makePassword(store)
  })
  expect(await at.after(() => at.store.delete(TunnelPassword, key))).toEqual([HOSTNAME])
  expect(at.routes.get(HOSTNAME)?.passwords).toEqual([])
  expect(at.routes.ofPassword(SHA256)).toBeUndefined()
})

test('a hash of several tunnels selects none of them', async () => {
  await using at = await start(async (store) => {
    await makeTunnel(store)
    await makePassword(store)
    await store.create(Namespace, { metadata: { name: 'eve--prod' } })
  })
  const theirs = { namespace: 'eve--prod', name: 'web' }
  await at.after(() => makePassword(at.store, { ...theirs, name: 'copy' }))
  expect(at.routes.ofPassword(SHA256)?.hostname).toBe(HOSTNAME)
  await at.after(async () => {
    await at.store.create(Tunnel, { metadata: theirs, spec: { regionId: 1 } })
    await at.store.patchStatus(Tunnel, theirs, assigned(OTHER, 'another'))
    await makePassword(at.store, { ...theirs, name: 'later' })
  })
  expect(at.routes.ofPassword(SHA256)).toBeUndefined()
  expect(at.routes.get(HOSTNAME)?.passwords).toHaveLength(1)
})

test('a password of another tunnel does not count', async () => {
  const owner = { apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', name: 'web', uid: crypto.randomUUID() }
  await using at = await start(async (store) => {
    await makeTunnel(store)
    await makePassword(store, { ...key, ownerReferences: [owner], finalizers: ['mooring.dev/test'] })
  })
  expect(at.routes.get(HOSTNAME)?.passwords).toEqual([])
  expect(at.routes.ofPassword(SHA256)).toBeUndefined()
})

test('a removed list entry no longer admits a client or visitor', async () => {
  await using at = await start(makeTunnel)
  expect(at.routes.get(HOSTNAME)?.ingress.allows('192.0.2.1')).toBe(true)
  await at.after(() => patch({ ingressIPWhitelist: ['198.51.100.0/24'], sshIPWhitelist: ['192.0.2.1'] })(at.store))
  const route = at.routes.get(HOSTNAME)
  expect([route?.ingress.allows('192.0.2.1'), route?.ingress.allows('198.51.100.7')]).toEqual([false, true])
  expect([route?.sshSources.allows('192.0.2.1'), route?.sshSources.allows('192.0.2.2')]).toEqual([true, false])
})

test('a listener that throws does not affect the others', async () => {
  await using at = await start()
  at.routes.onChange(() => {
    throw new Error('mine')
  })
  const heard: string[] = []
  const stop = at.routes.onChange((hostname) => heard.push(hostname))
  await at.after(() => makeTunnel(at.store))
  expect([new Set(heard), at.errors.length > 0]).toEqual([new Set([HOSTNAME]), true])
  stop()
  heard.length = 0
  await at.after(() => patch({ httpsOnly: true })(at.store))
  expect(heard).toEqual([])
})

test('a key leads to the tunnels that list it, as long as they are served', async () => {
  const line = `ssh-ed25519 ${'A'.repeat(68)}`
  const listed = { type: 'ssh-ed25519', blob: Buffer.from('A'.repeat(68), 'base64') }
  const config = (...authorizedKeys: readonly string[]) => ({ config: { authorizedKeys } })
  const expiresAt = '2100-01-01T00:00:00Z'
  await using at = await start((store) => makeTunnel(store, assigned(HOSTNAME), { ...config(line), expiresAt }))
  const found = () => at.routes.ofKey(listed, 9).map(({ hostname }) => hostname)
  expect(found()).toEqual([HOSTNAME])
  await at.after(() => at.store.mergePatch(Tunnel, web, { spec: config() }))
  expect(found()).toEqual([])
  await at.after(() => at.store.mergePatch(Tunnel, web, { spec: config(`${line} with-a-comment`) }))
  expect(found()).toEqual([HOSTNAME])
  await at.after(() => at.store.delete(Tunnel, web))
  expect(found()).toEqual([])
})

const blob = (number: number) => Buffer.from(`key ${number}`)
const line = (number: number, comment = '') => `ssh-ed25519 ${blob(number).toString('base64')}${comment}`
const TYPE = 'ssh-ed25519'

test('a key is found by type and bytes, whatever its comment and padding', () => {
  const index = new KeyIndex()
  index.replace('a', [], [line(1, ' me@host'), line(22).replace(/=+$/, '')])
  expect([index.of(TYPE, blob(1), 9), index.of(TYPE, blob(22), 9)]).toEqual([['a'], ['a']])
  expect([index.of('ssh-rsa', blob(1), 9), index.of(TYPE, blob(3), 9)]).toEqual([[], []])
})

test('a lookup returns at most the given number of tunnels', () => {
  const index = new KeyIndex()
  for (let number = 0; number < 100; number++) index.replace(`tunnel-${number}`, [], [line(1)])
  expect(index.of(TYPE, blob(1), 3)).toHaveLength(3)
})

test('after any changes a key is found in exactly the tunnels that list it', () => {
  const change = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.array(fc.nat(4), { maxLength: 5 }))
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
      const [index, lists] = [new KeyIndex(), new Map<string, readonly string[]>()]
      for (const [hostname, numbers] of changes) {
        const after = numbers.map((number) => line(number))
        index.replace(hostname, lists.get(hostname) ?? [], after)
        lists.set(hostname, after)
      }
      for (let number = 0; number <= 4; number++) {
        const expected = [...lists].filter(([, lines]) => lines.includes(line(number))).map(([hostname]) => hostname)
        expect([...index.of(TYPE, blob(number), 9)].sort()).toEqual(expected.sort())
      }
    }),
  )
})
