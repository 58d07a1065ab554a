import { expect, test } from 'vitest'
import { Namespace, Secret } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { openTemporaryStore } from '../../../store/embedded/open-temporary.ts'
import { hostKeysName } from '../host-keys.ts'
import { keyIn } from './names.ts'
import { createSecretLooks } from './secret-looks.ts'

test('Secrets differ at the first look, and when they were changed or deleted since the one before', async () => {
  await using opened = await openTemporaryStore()
  const { store } = opened
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  const looks = createSecretLooks(store)
  expect(await looks.differ('a')).toBe(true)
  expect(await looks.differ('a')).toBe(false)

  const made = await store.create(Secret, { metadata: keyIn(hostKeysName('a')), data: { ed25519: 'AA==' } })
  expect(await looks.differ('a')).toBe(true)
  await store.replace(Secret, { ...made, data: { ed25519: 'AQ==' } })
  expect(await looks.differ('a')).toBe(true)
  expect(await looks.differ('a')).toBe(false)
  await store.delete(Secret, keyIn(hostKeysName('a')))
  expect(await looks.differ('a')).toBe(true)

  looks.forget('a')
  expect(await looks.differ('a')).toBe(true)
})
