import { X509Certificate } from 'node:crypto'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createIssuer, IssuerKeyFile } from '../../apiserver/auth/issuer.ts'
import { Namespace, Secret } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import type { Store } from '../../store/port.ts'
import { decodeSecret } from '../secret-data.ts'
import { keepApiSecret } from './api-secret.ts'
import { keepCa, openCa } from './ca.ts'
import { keptSecret } from './kept-secret.ts'
import { restrictSystemNamespace } from '../start.ts'

const log = pino({ level: 'silent' })

async function installation() {
  const opened = await openTemporaryStore()
  await opened.store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  return opened
}

async function textsOf(store: Store, name: string): Promise<Record<string, string>> {
  const secret = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name })
  const data = secret?.data ?? {}
  return Object.fromEntries(Object.keys(data).map((key) => [key, decodeSecret(data, key) ?? '']))
}

const keep = async (store: Store, names: readonly string[], issuerUrl = 'https://issuer.test') =>
  keepApiSecret({ store, ca: await openCa(store), names, issuerUrl, log })

test('two concurrent creations of a Secret return the values of the first', async () => {
  await using opened = await installation()
  const make = async () => ({ drawn: crypto.randomUUID() })
  const [one, two] = await Promise.all([keptSecret(opened.store, 'x', make), keptSecret(opened.store, 'x', make)])
  expect(one).toEqual(two)
})

test('the API server has all it needs: a certificate of the CA, keys that check the tokens, a secret', async () => {
  await using opened = await installation()
  ;(await keep(opened.store, ['api.test', '10.0.0.1']))[Symbol.dispose]()
  const files = await textsOf(opened.store, 'mooring-apiserver')
  const certificate = new X509Certificate(files['tls.crt'] ?? '')
  expect(certificate.checkHost('api.test')).toBe('api.test')
  expect(certificate.verify(new X509Certificate(files['ca.crt'] ?? '').publicKey)).toBe(true)
  expect(files['token-secret']).toMatch(/^[0-9a-f]{64}$/)

  const { issuer } = await textsOf(opened.store, 'mooring-issuer')
  const signer = await createIssuer(IssuerKeyFile.parse(JSON.parse(issuer ?? '')))
  const token = await signer.sign({ subject: 'alice', ttlSeconds: 60 })
  const keys = createLocalJWKSet(JSON.parse(files['jwks.json'] ?? '') as Parameters<typeof createLocalJWKSet>[0])
  expect((await jwtVerify(token, keys, { issuer: files.issuer ?? '' })).payload.sub).toBe('alice')
  expect(files['jwks.json']).not.toContain('"d"')
})

test('a later start with another address changes only the certificate', async () => {
  await using opened = await installation()
  ;(await keep(opened.store, ['old.test']))[Symbol.dispose]()
  const before = await textsOf(opened.store, 'mooring-apiserver')
  ;(await keep(opened.store, ['new.test'], 'https://other.test'))[Symbol.dispose]()
  const after = await textsOf(opened.store, 'mooring-apiserver')
  expect(new X509Certificate(after['tls.crt'] ?? '').checkHost('new.test')).toBe('new.test')
  for (const name of ['ca.crt', 'token-secret', 'jwks.json', 'issuer']) expect(after[name]).toBe(before[name])
})

test('a start with valid Secrets writes nothing', async () => {
  await using opened = await installation()
  const revision = async () => (await opened.store.list(Secret)).items.map(({ metadata }) => metadata.resourceVersion)
  ;(await keep(opened.store, ['api.test']))[Symbol.dispose]()
  const before = await revision()
  ;(await keep(opened.store, ['api.test']))[Symbol.dispose]()
  expect(await revision()).toEqual(before)
})

const remove = (store: Store, name: string) => store.delete(Secret, { namespace: SYSTEM_NAMESPACE, name })

test.each(['mooring-apiserver', 'mooring-issuer'])('while the operator runs, a deleted Secret %s is restored', async (name) => {
  await using opened = await installation()
  const { store } = opened
  using kept = await keep(store, ['api.test'])
  const before = await textsOf(store, name)
  await remove(store, name)
  await kept.check()
  expect(await textsOf(store, name)).toEqual(before)
})

test.each([
  { how: 'deleted', damage: (store: Store) => remove(store, 'mooring-ca') },
  {
    how: 'without its key',
    damage: (store: Store) =>
      store.mergePatch(Secret, { namespace: SYSTEM_NAMESPACE, name: 'mooring-ca' }, { data: { key: null } }),
  },
])('while the operator runs, a CA that is $how is restored', async ({ damage }) => {
  await using opened = await installation()
  const { store } = opened
  using ca = await keepCa({ store, log })
  const before = await textsOf(store, 'mooring-ca')
  await damage(store)
  await ca.check()
  expect(await textsOf(store, 'mooring-ca')).toEqual(before)
})

test.each([
  { how: 'was lost', damage: (store: Store) => remove(store, 'mooring-ca') },
  {
    how: 'is no CA any more',
    damage: (store: Store) =>
      store.mergePatch(Secret, { namespace: SYSTEM_NAMESPACE, name: 'mooring-ca' }, { data: { key: 'bm8=' } }),
  },
])('a start whose CA $how creates another, issues the certificate of the API by it, and logs a warning', async ({ damage }) => {
  await using opened = await installation()
  const { store } = opened
  const said: string[] = []
  const start = async () => {
    using ca = await keepCa({ store, log: { error: () => undefined, warn: (text: unknown) => void said.push(String(text)) } })
    ;(await keepApiSecret({ store, ca: ca.current, names: ['api.test'], issuerUrl: 'https://issuer.test', log }))[
      Symbol.dispose
    ]()
  }
  await start()
  await start()
  expect(said).toEqual([])
  const before = await textsOf(store, 'mooring-apiserver')
  await damage(store)
  await start()
  expect(said).toEqual([expect.stringContaining('issued anew')])
  const after = await textsOf(store, 'mooring-apiserver')
  expect(after['ca.crt']).not.toBe(before['ca.crt'])
  expect(new X509Certificate(after['tls.crt'] ?? '').verify(new X509Certificate(after['ca.crt'] ?? '').publicKey)).toBe(true)
})

test.each(['', 'abcd', 'not hexadecimal'])('an invalid token secret (%j) is replaced', async (held) => {
  await using opened = await installation()
  const { store } = opened
  const data = { 'token-secret': Buffer.from(held).toString('base64') }
  await store.create(Secret, { metadata: { namespace: SYSTEM_NAMESPACE, name: 'mooring-apiserver' }, data })
  ;(await keep(store, ['api.test']))[Symbol.dispose]()
  expect((await textsOf(store, 'mooring-apiserver'))['token-secret']).toMatch(/^[0-9a-f]{64}$/)
})

test('mooring-system admits only restricted pods, and keeps its other labels', async () => {
  await using opened = await openTemporaryStore()
  const { store } = opened
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE, labels: { team: 'db' } } })
  await restrictSystemNamespace(store)
  expect((await store.get(Namespace, { name: SYSTEM_NAMESPACE }))?.metadata.labels).toMatchObject({
    team: 'db',
    'pod-security.kubernetes.io/enforce': 'restricted',
  })
})
