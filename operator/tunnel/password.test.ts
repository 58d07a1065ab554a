import { describe, expect, test, vi } from 'vitest'
import { endOfPassword, PASSWORD_LIFE_MS, TunnelPassword } from '../../crds/tunnel-password.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { conditionOf } from '../../store/conditions.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { dedicatedDatabase } from '../../test/builders/dedicated.ts'
import { REGION_ID, tunnel, tunnelPassword } from '../../test/builders/resources.ts'
import { HOUR, inNamespace, NAMESPACE, startTunnels, web } from '../../test/support/operator/tunnel-controllers.ts'
import { passwordDecision, type ObservedPassword } from './password.ts'

const soon = { timeout: 60_000, interval: 10 }

describe('a password', () => {
  const NOW = Date.parse('2026-01-01T12:30:00Z')
  const FOUR = Date.parse('2026-01-01T16:00:00Z')
  const mine = tunnelPassword({ metadata: { name: 'mine' } })
  const ownedBy = (uid: string) =>
    tunnelPassword({
      metadata: { name: 'mine', ownerReferences: [{ apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', name: 'web', uid }] },
    })
  const older = Array.from({ length: 10 }, (_, index) =>
    tunnelPassword({
      metadata: { name: `older-${index}`, creationTimestamp: `2026-01-01T11:00:0${index}Z` },
      ...(index === 7 && { spec: { expiresAt: '2026-01-01T13:00:00Z' } }),
    }),
  )
  test.each<{ does: string; seen: Partial<ObservedPassword>; reason: string; message?: string; until: number }>([
    {
      does: 'without a tunnel is not ready until its expiry',
      ...{ seen: { owner: undefined }, reason: 'TunnelMissing', message: 'there is no tunnel web', until: FOUR },
    },
    {
      does: 'of an earlier tunnel does not open a later one',
      seen: { password: ownedBy('uid-of-an-earlier-one') },
      ...{ reason: 'TunnelMissing', message: 'it is for an earlier tunnel named web', until: FOUR },
    },
    {
      does: 'is active until its expiry',
      ...{ seen: {}, reason: 'Active', message: 'it opens web until 2026-01-01T16:00:00.000Z', until: FOUR },
    },
    { does: 'with nine older ones is active', seen: { named: [mine, ...older.slice(1)] }, reason: 'Active', until: FOUR },
    {
      does: 'with ten older ones waits until the first of them expires',
      ...{ seen: { named: [mine, ...older] }, reason: 'TooManyPasswords', until: Date.parse('2026-01-01T13:00:00Z') },
      message: 'web has 10 older active passwords, which is the maximum: this one is rejected until one of them expires',
    },
    {
      does: 'with ten older ones of which one has expired is active',
      ...{ seen: { named: [mine, ...older], now: Date.parse('2026-01-01T13:00:00Z') }, reason: 'Active', until: FOUR },
    },
  ])('$does', ({ seen, reason, message, until }) => {
    const is = passwordDecision({ password: mine, owner: tunnel(), named: [mine], now: NOW, ...seen })
    expect([is.decision.reason, is.until]).toEqual([reason, until])
    expect(is.decision.status).toBe(reason === 'Active' ? 'True' : 'False')
    if (message !== undefined) expect(is.decision.message).toBe(message)
  })
})

describe('a password of a database', () => {
  const NOW = Date.parse('2026-01-01T12:30:00Z')
  const settings = { authMode: 'both', authorizedKeys: [] } as const
  const database = dedicatedDatabase({ metadata: { name: 'shop' }, spec: { sshTunnel: settings } })
  const { namespace = '', uid } = database.metadata
  const password = tunnelPassword({
    metadata: { namespace },
    spec: { tunnelRef: undefined, databaseRef: { name: 'shop' } },
  })
  test.each([
    { does: 'is active', owner: database, reason: 'Active', message: 'it opens shop until 2026-01-01T16:00:00.000Z' },
    { does: 'without its database is not ready', owner: undefined, message: 'there is no database shop' },
    {
      does: 'is not one of a tunnel of the same name',
      owner: tunnel({ metadata: { name: 'shop', namespace, uid } }),
      message: 'it is for an earlier database named shop',
    },
    {
      does: 'waits for the add-on',
      owner: dedicatedDatabase({ metadata: { name: 'shop' } }),
      message: 'the database shop has no sshTunnel',
    },
  ])('$does', ({ owner, reason = 'DatabaseMissing', message }) => {
    const { decision } = passwordDecision({ password, owner, named: [password], now: NOW })
    expect([decision.reason, decision.message]).toEqual([reason, message])
  })
})

test('a password made with kubectl for a database gets the database as its owner', async () => {
  await using at = await startTunnels()
  const database = await at.store.create(DedicatedDatabase, {
    metadata: inNamespace('shop'),
    spec: { motor: 'postgresql-15.4.0', region: REGION_ID, plan: 'small', sshTunnel: {} },
  })
  const spec = { databaseRef: { name: 'shop' }, sha256: 'a'.repeat(64), expiresAt: '2030-01-01T00:00:00Z' }
  await at.store.create(TunnelPassword, { metadata: inNamespace('p'), spec })
  await vi.waitFor(async () => {
    const found = await at.store.get(TunnelPassword, inNamespace('p'))
    expect(found?.metadata.ownerReferences).toMatchObject([{ kind: 'DedicatedDatabase', uid: database.metadata.uid }])
    expect(found?.status?.conditions).toMatchObject([{ type: 'Ready', reason: 'Active' }])
  }, soon)
})

test.each([
  { names: 'a tunnel and a database', refs: { tunnelRef: { name: 'web' }, databaseRef: { name: 'shop' } } },
  { names: 'neither', refs: {} },
])('a password that names $names is rejected', async ({ refs }) => {
  await using at = await startTunnels()
  const spec = { ...refs, sha256: 'a'.repeat(64), expiresAt: '2030-01-01T00:00:00Z' }
  await expect(at.store.create(TunnelPassword, { metadata: inNamespace('p'), spec })).rejects.toThrow('must name either')
})

async function startWithTunnel() {
  const at = await startTunnels()
  const { metadata } = await at.makeTunnel()
  const get = (name: string) => at.store.get(TunnelPassword, inNamespace(name))
  return {
    ...at,
    uid: metadata.uid,
    get,
    /** Creates a password as kubectl does. */
    make: (name: string, expiresAt = '2099-01-01T00:00:00Z') =>
      at.store.create(TunnelPassword, {
        metadata: inNamespace(name),
        spec: { tunnelRef: { name: 'web' }, sha256: 'a'.repeat(64), expiresAt },
      }),
    reasonOf: async (name: string) => {
      const password = await get(name)
      return password && conditionOf(password, 'Ready')?.reason
    },
    [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
  }
}

test('a password made with kubectl for years reports its expiry, and is deleted after four hours', async () => {
  await using at = await startWithTunnel()
  const made = await at.make('p')
  await vi.waitFor(async () => expect(await at.reasonOf('p')).toBe('Active'), soon)
  const end = new Date(Date.parse(made.metadata.creationTimestamp) + PASSWORD_LIFE_MS).toISOString()
  const password = await at.get('p')
  expect(password?.status?.expiresAt).toBe(end)
  expect(password && conditionOf(password, 'Ready')?.message).toBe(`it opens web until ${end}`)
  await at.advance(endOfPassword(made) - at.now().getTime() - 60_000)
  expect(await at.get('p')).toBeDefined()
  await at.advance(60_000)
  await vi.waitFor(async () => expect(await at.get('p')).toBeUndefined(), soon)
})

test('a password made with kubectl gets its tunnel as a further owner, and is deleted with it', async () => {
  await using at = await startWithTunnel()
  const first = await at.make('first')
  const other = { apiVersion: 'v1', kind: 'Pod', name: 'other', uid: first.metadata.uid }
  await at.store.create(TunnelPassword, {
    metadata: { ...inNamespace('second'), ownerReferences: [other] },
    spec: { ...first.spec },
  })
  const owner = { apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', name: 'web', uid: at.uid }
  const ownersOf = async (name: string) => (await at.get(name))?.metadata.ownerReferences
  await vi.waitFor(async () => expect(await ownersOf('second')).toEqual([other, owner]), soon)
  await vi.waitFor(async () => expect(await ownersOf('first')).toEqual([owner]), soon)
  await at.store.delete(Tunnel, web)
  await at.gone()
  await vi.waitFor(async () => expect(await at.get('first')).toBeUndefined(), soon)
})

test('a password of an earlier tunnel does not get a later tunnel of the name as its owner', async () => {
  await using at = await startWithTunnel()
  await at.make('kept')
  await vi.waitFor(async () => expect(await at.reasonOf('kept')).toBe('Active'), soon)
  await at.store.mergePatch(TunnelPassword, inNamespace('kept'), { metadata: { finalizers: ['example.com/kept'] } })
  const before = (await at.get('kept'))?.metadata.ownerReferences
  await at.store.delete(Tunnel, web)
  await at.gone()
  const { metadata } = await at.makeTunnel()
  await at.make('new')
  await vi.waitFor(async () => expect(await at.reasonOf('new')).toBe('Active'), soon)
  expect((await at.get('new'))?.metadata.ownerReferences).toMatchObject([{ uid: metadata.uid }])
  expect((await at.get('kept'))?.metadata.ownerReferences).toEqual(before)
})

test('the eleventh password is not ready until an older one is deleted or expires', async () => {
  await using at = await startWithTunnel()
  const name = (index: number) => `p-${String.fromCharCode(97 + index)}`
  for (let index = 0; index < 10; index++) {
    const expiresAt = index === 3 ? new Date(at.now().getTime() + HOUR).toISOString() : undefined
    await at.make(name(index), expiresAt)
  }
  await at.make(name(10))
  await at.make(name(11))
  const reasons = async () => Promise.all(Array.from({ length: 12 }, (_, index) => at.reasonOf(name(index))))
  const ten = Array.from({ length: 10 }, () => 'Active')
  await vi.waitFor(async () => expect(await reasons()).toEqual([...ten, 'TooManyPasswords', 'TooManyPasswords']), soon)
  await at.store.delete(TunnelPassword, { namespace: NAMESPACE, name: name(5) })
  await vi.waitFor(async () => expect((await reasons()).slice(10)).toEqual(['Active', 'TooManyPasswords']), soon)
  await at.advance(HOUR)
  await vi.waitFor(async () => expect((await reasons()).slice(10)).toEqual(['Active', 'Active']), soon)
  expect(await at.get(name(3))).toBeUndefined()
})
