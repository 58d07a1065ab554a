import { expect, test } from 'vitest'
import { Namespace, Secret } from '../crds/core.ts'
import { Tunnel } from '../crds/tunnel.ts'
import { openTemporaryStore } from '../test/support/store/temporary-store.ts'
import { addHeaderValues, headerSecretName, pruneHeaderValues } from './header-secrets.ts'
import type { Store } from './port.ts'

const web = { namespace: 'acme--prod', name: 'web' }
const own = { namespace: 'acme--prod', name: 'web-headers' }

async function start() {
  const { store, ...opened } = await openTemporaryStore()
  await store.create(Namespace, { metadata: { name: 'acme--prod' } })
  const tunnel = await store.create(Tunnel, { metadata: web, spec: { regionId: 1 } })
  return { store, tunnel, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() }
}

const keys = async (store: Store) => Object.keys((await store.get(Secret, own))?.data ?? {})
const referring = (store: Store, ...names: readonly string[]) =>
  store.mergePatch(Tunnel, web, {
    spec: {
      config: {
        liveHeaderModifications: names.map((key) => ({
          ...{ name: 'A', type: 'request' },
          valueFrom: { secretKeyRef: { name: own.name, key } },
        })),
      },
    },
  })

test('values are added to a Secret that is deleted with the tunnel, and unused ones are removed', async () => {
  await using at = await start()
  const { store, tunnel } = at
  await addHeaderValues(store, tunnel, { a: '1' })
  const secret = await addHeaderValues(store, tunnel, { b: '2' })
  expect(await addHeaderValues(store, tunnel, { b: '2' })).toEqual(secret)
  if (secret) await pruneHeaderValues(store, await referring(store, 'b'), secret)
  expect(await keys(store)).toEqual(['b'])
  await store.delete(Tunnel, web)
  await expect.poll(() => store.get(Secret, own)).toBeUndefined()
})

test('values that another writer has added meanwhile, and may be about to use, are not removed', async () => {
  await using at = await start()
  const { store, tunnel } = at
  const secret = await addHeaderValues(store, tunnel, { a: '1' })
  await addHeaderValues(store, tunnel, { others: '2' })
  if (secret) await pruneHeaderValues(store, await referring(store), secret)
  expect(await keys(store)).toEqual(['a', 'others'])
})

test('a Secret of another owner is left alone', async () => {
  await using at = await start()
  const { store, tunnel } = at
  const made = await store.create(Secret, { metadata: own, data: {} })
  await expect(addHeaderValues(store, tunnel, { a: '1' })).rejects.toMatchObject({ code: 'secret_name_taken' })
  await pruneHeaderValues(store, tunnel, made)
  expect(await store.get(Secret, own)).toEqual(made)
})

test.each([
  { of: 'a tunnel', name: 'web', secret: /^web-headers$/ },
  { of: 'a tunnel with a name as long as names may be', name: 'a'.repeat(253), secret: /^headers-[0-9a-f]{40}$/ },
])('the name of the Secret of $of is a valid name', ({ name, secret }) => {
  expect(headerSecretName(name)).toMatch(secret)
})
