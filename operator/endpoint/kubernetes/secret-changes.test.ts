import { expect, test } from 'vitest'
import { Namespace, Secret } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { hostKeysSecret, meshSecret, unknownHostsSecret } from '../../../shared/edge-objects.ts'
import { openTemporaryStore } from '../../../test/support/store/temporary-store.ts'
import { keyIn } from './names.ts'
import { createSecretChanges } from './secret-changes.ts'

test.each([
  { what: 'host keys', nameOf: hostKeysSecret },
  { what: 'the certificate of its mesh', nameOf: meshSecret },
  { what: 'the certificate for unknown hosts', nameOf: unknownHostsSecret },
])('$what: differ at the first call, and when changed or deleted since the last one', async ({ nameOf }) => {
  await using opened = await openTemporaryStore()
  const { store } = opened
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  const changes = createSecretChanges(store)
  expect(await changes.differ('a')).toBe(true)
  expect(await changes.differ('a')).toBe(false)

  const made = await store.create(Secret, { metadata: keyIn(nameOf('a')), data: { 'tls.key': 'AA==' } })
  expect(await changes.differ('a')).toBe(true)
  await store.replace(Secret, { ...made, data: { 'tls.key': 'AQ==' } })
  expect(await changes.differ('a')).toBe(true)
  expect(await changes.differ('a')).toBe(false)
  await store.delete(Secret, keyIn(nameOf('a')))
  expect(await changes.differ('a')).toBe(true)

  changes.forget('a')
  expect(await changes.differ('a')).toBe(true)
})
