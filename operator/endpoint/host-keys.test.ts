import { expect, test } from 'vitest'
import { Namespace, Secret } from '../../crds/core.ts'
import { ownerReferenceTo } from '../../crds/kind.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { formerHostKeysSecret, hostKeysSecret } from '../../shared/edge-objects.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { tunnelEndpoint } from '../../test/builders/resources.ts'
import { decodeSecret, encodeSecret } from '../secret-data.ts'
import { createHostKeyring, hostKeysOf, openHostKeys } from './host-keys.ts'

const key = { namespace: SYSTEM_NAMESPACE, name: hostKeysSecret('eu.test') }
const eu = { name: 'eu', domain: 'eu.test' }
const ENTRIES = ['ed25519', 'ed25519.pub', 'ecdsa', 'ecdsa.pub', 'rsa', 'rsa.pub']

async function start() {
  const { store, ...opened } = await openTemporaryStore()
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  return {
    store,
    textOf: async (entry: string) => decodeSecret((await store.get(Secret, key))?.data ?? {}, entry) ?? '',
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

test.each([
  { how: 'deleted', data: undefined },
  { how: 'stripped of a key', data: { rsa: null } },
  { how: 'given an invalid key', data: encodeSecret({ rsa: 'no key' }) },
])('host keys whose Secret was $how by hand are restored', async ({ data }) => {
  await using at = await start()
  const { store } = at
  const keyring = createHostKeyring(store)
  const before = await keyring.open(eu)
  expect(before.publicKeys.map((line) => line.split(' ')[0])).toEqual(['ssh-ed25519', 'ecdsa-sha2-nistp256', 'ssh-rsa'])
  if (data) await store.mergePatch(Secret, key, { data })
  else await store.delete(Secret, key)
  expect(await keyring.open(eu)).toEqual(before)
  expect(await createHostKeyring(store).open(eu)).toEqual(before)
})

test.each(ENTRIES)('when %s is lost and not in memory, all other host keys stay', async (lost) => {
  await using at = await start()
  const before = await createHostKeyring(at.store).open(eu)
  await at.store.mergePatch(Secret, key, { data: { [lost]: null } })
  const after = await createHostKeyring(at.store).open(eu)
  const drawn = ENTRIES.indexOf(lost) % 2 === 0 ? ENTRIES.indexOf(lost) / 2 : -1
  expect(after.privateKeys.map((text, index) => text === before.privateKeys[index])).toEqual([0, 1, 2].map((at) => at !== drawn))
  expect(after.publicKeys.map((line, index) => line === before.publicKeys[index])).toEqual([0, 1, 2].map((at) => at !== drawn))
  expect(await createHostKeyring(at.store).open(eu)).toEqual(after)
  for (const entry of ENTRIES) expect(await at.textOf(entry)).not.toBe('')
})

test('a public key of another private key is derived anew', async () => {
  await using at = await start()
  const before = await createHostKeyring(at.store).open(eu)
  await at.store.mergePatch(Secret, key, { data: encodeSecret({ 'ecdsa.pub': await at.textOf('rsa.pub') }) })
  expect(await createHostKeyring(at.store).open(eu)).toEqual(before)
})

test('forget removes the host keys of an endpoint from memory', async () => {
  await using at = await start()
  const keyring = createHostKeyring(at.store)
  const before = await keyring.open(eu)
  keyring.forget('eu')
  await at.store.delete(Secret, key)
  const after = await keyring.open(eu)
  expect(after.publicKeys.filter((line) => before.publicKeys.includes(line))).toEqual([])
})

test('host keys outlive their endpoint, and are those of the next endpoint with its domain', async () => {
  await using at = await start()
  const { store } = at
  const before = await openHostKeys(store, eu)
  const { spec } = tunnelEndpoint()
  const create = (name: string) => store.create(TunnelEndpoint, { metadata: { name }, spec: { ...spec, domain: 'eu.test' } })
  const keyring = createHostKeyring(store)
  expect(await keyring.open(hostKeysOf(await create('eu')))).toEqual(before)
  const { resourceVersion, ownerReferences } = (await store.get(Secret, key))?.metadata ?? {}
  expect(ownerReferences).toBeUndefined()
  await store.delete(TunnelEndpoint, { name: 'eu' })
  keyring.forget('eu')
  expect(await keyring.open(hostKeysOf(await create('other')))).toEqual(before)
  expect((await store.get(Secret, key))?.metadata.resourceVersion).toBe(resourceVersion)
  const { publicKeys } = await keyring.open({ name: 'eu', domain: 'us.test' })
  expect(publicKeys.filter((line) => before.publicKeys.includes(line))).toEqual([])
})

test.each([
  { of: 'the endpoint', owner: 0, kept: 3 },
  { of: 'an earlier endpoint of its name', owner: 1, kept: 0 },
])('of the Secret of $of, which an earlier version made, $kept host keys are taken over', async ({ owner, kept }) => {
  await using at = await start()
  const { store } = at
  const { spec } = tunnelEndpoint()
  const made = await Promise.all(['eu', 'other'].map((name) => store.create(TunnelEndpoint, { metadata: { name }, spec })))
  const former = await openHostKeys(store, { name: 'any', domain: 'any.test' })
  const { data = {} } = (await store.get(Secret, { ...key, name: hostKeysSecret('any.test') })) ?? {}
  const ownerReferences = made.slice(owner, owner + 1).map((each) => ownerReferenceTo(TunnelEndpoint, each))
  await store.create(Secret, { metadata: { ...key, name: formerHostKeysSecret('eu'), ownerReferences }, data })
  const { privateKeys } = await openHostKeys(store, { ...eu, uid: made[0]?.metadata.uid })
  expect(privateKeys.filter((pem) => former.privateKeys.includes(pem))).toHaveLength(kept)
})
