import { expect, test } from 'vitest'
import { Namespace, Secret } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { openTemporaryStore } from '../../store/embedded/open-temporary.ts'
import { createHostKeyring, hostKeysName } from './host-keys.ts'

const key = { namespace: SYSTEM_NAMESPACE, name: hostKeysName('eu') }
const eu = { name: 'eu', owners: [] }

test.each([
  { how: 'deleted', data: undefined },
  { how: 'robbed of a key', data: { rsa: null } },
])('host keys whose Secret was $how by hand are the same again: clients know them', async ({ data }) => {
  await using opened = await openTemporaryStore()
  const { store } = opened
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  const open = createHostKeyring(store)
  const before = await open(eu)
  expect(before.publicKeys.map((line) => line.split(' ')[0])).toEqual(['ssh-ed25519', 'ecdsa-sha2-nistp256', 'ssh-rsa'])
  if (data) await store.mergePatch(Secret, key, { data })
  else await store.delete(Secret, key)
  expect(await open(eu)).toEqual(before)
  expect(await createHostKeyring(store)(eu)).toEqual(before)
})
