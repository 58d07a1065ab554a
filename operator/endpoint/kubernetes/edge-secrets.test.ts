import { X509Certificate, createPrivateKey } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:tls'
import { expect, test } from 'vitest'
import { Namespace, Secret } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { meshSecret, unknownHostsSecret, hostKeysSecret } from '../../../shared/edge-objects.ts'
import { openTemporaryStore } from '../../../test/support/store/temporary-store.ts'
import type { Store } from '../../../store/port.ts'
import { decodeSecret, encodeSecret } from '../../secret-data.ts'
import { endpoint } from '../../../test/support/operator/kubernetes-objects.ts'
import { createMeshKeeper, meshHost, createUnknownHostsKeeper, createSecretChanges } from './edge-secrets.ts'
import { keyIn } from './kinds.ts'
import { createCa, issueCertificate } from '../../certificates/local-ca.ts'

const DAY = 86_400_000
const begin = Date.now()
const meshKey = keyIn(meshSecret('eu'))

async function startMesh() {
  const opened = await openTemporaryStore()
  const { store } = opened
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  const eu = await store.create(TunnelEndpoint, { metadata: { name: 'eu' }, spec: endpoint().spec })
  return {
    store,
    /** Keeps the Secret like an operator that has just started. */
    keep: (days = 0) => createMeshKeeper({ store, now: () => new Date(begin + days * DAY) }).keep(eu),
    keepOn: () => {
      const keeper = createMeshKeeper({ store, now: () => new Date(begin) })
      return { keep: () => keeper.keep(eu), forget: () => keeper.forget('eu') }
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

async function textsOf(store: Store) {
  const secret = await store.get(Secret, meshKey)
  const text = (name: string) => decodeSecret(secret?.data ?? {}, name) ?? ''
  return { revision: secret?.metadata.resourceVersion, ca: text('ca.crt'), cert: text('tls.crt'), key: text('tls.key') }
}

test('two edges authenticate each other at both ends of a connection by the Secret', async () => {
  await using installation = await startMesh()
  const { store, keep } = installation
  await keep()
  const { ca, cert, key } = await textsOf(store)
  const server = createServer({ ca, cert, key, requestCert: true, rejectUnauthorized: true }, (socket) => socket.end('hello'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect({ port, host: '127.0.0.1', ca, cert, key, servername: meshHost('eu') })
  const [heard] = (await once(client, 'data')) as [Buffer]
  expect(heard.toString()).toBe('hello')
  client.destroy()
  server.close()
})

test('the certificate is renewed by the same CA at two thirds of its lifetime, not before', async () => {
  await using installation = await startMesh()
  const { store, keep } = installation
  await keep()
  const first = await textsOf(store)
  await keep(59)
  expect(await textsOf(store)).toEqual(first)
  await keep(61)
  const second = await textsOf(store)
  expect(second.ca).toBe(first.ca)
  expect(new X509Certificate(second.cert).validToDate.getTime()).toBeGreaterThan(
    new X509Certificate(first.cert).validToDate.getTime(),
  )
})

test.each([
  { damage: 'its certificate', data: { 'tls.crt': 'bm8=' } },
  { damage: 'its key', data: { 'tls.key': null } },
  { damage: 'the authority', data: { 'ca.crt': 'bm8=' } },
])('a Secret that has lost $damage is repaired', async ({ data }) => {
  await using installation = await startMesh()
  const { store, keep } = installation
  await keep()
  await store.mergePatch(Secret, meshKey, { data })
  await keep()
  const { ca, cert } = await textsOf(store)
  expect(new X509Certificate(cert).verify(new X509Certificate(ca).publicKey)).toBe(true)
})

test.each([
  { how: 'deleted', data: undefined },
  { how: 'damaged', data: { 'ca.crt': 'bm8=', 'tls.key': null } },
])('a Secret that was $how is restored from memory', async ({ data }) => {
  await using installation = await startMesh()
  const { store, keepOn } = installation
  const { keep } = keepOn()
  await keep()
  const { ca, cert } = await textsOf(store)
  if (data) await store.mergePatch(Secret, meshKey, { data })
  else await store.delete(Secret, meshKey)
  await keep()
  expect(await textsOf(store)).toMatchObject({ ca, cert })
})

test('forget removes the Secret of an endpoint from memory', async () => {
  await using installation = await startMesh()
  const { store, keepOn } = installation
  const { keep, forget } = keepOn()
  await keep()
  const { ca, key: before } = await textsOf(store)
  forget()
  await store.delete(Secret, meshKey)
  await keep()
  const after = await textsOf(store)
  expect([after.ca === ca, after.key === before]).toEqual([false, false])
})

const unknownHostsKey = keyIn(unknownHostsSecret('eu'))
const [ca, otherCa] = await Promise.all([createCa(new Date(begin)), createCa(new Date(begin))])

async function startUnknownHosts(spec: object = {}) {
  const opened = await openTemporaryStore()
  const { store } = opened
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  const eu = await store.create(TunnelEndpoint, { metadata: { name: 'eu' }, spec: endpoint(spec).spec })
  return {
    ...{ store, eu },
    keep: (days = 0, by = ca) => createUnknownHostsKeeper({ store, ca: () => by, now: () => new Date(begin + days * DAY) })(eu),
    async kept() {
      const { metadata, type, data } = (await store.get(Secret, unknownHostsKey)) ?? { data: {} }
      const text = (name: string) => decodeSecret(data, name) ?? ''
      return { metadata, type, certificate: new X509Certificate(text('tls.crt')), privateKey: text('tls.key') }
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

test.each([{ issuer: 'local' }, { issuer: 'acme' }])(
  'with any issuer of tunnels ($issuer), the certificate is for the domain and its wildcard, signed by the local CA',
  async ({ issuer }) => {
    await using at = await startUnknownHosts({ issuer })
    const said = await at.keep()
    const { certificate, privateKey, metadata, type } = await at.kept()
    expect(certificate.verify(new X509Certificate(ca.certificate).publicKey)).toBe(true)
    expect(certificate.checkPrivateKey(createPrivateKey(privateKey))).toBe(true)
    expect(certificate.subjectAltName).toBe('DNS:*.t.test, DNS:t.test')
    expect(type).toBe('kubernetes.io/tls')
    expect(metadata).toMatchObject({
      labels: { 'mooring.dev/endpoint': 'eu' },
      ownerReferences: [{ kind: 'TunnelEndpoint', uid: at.eu.metadata.uid }],
    })
    expect(said).toEqual({
      notBefore: certificate.validFromDate.toISOString(),
      notAfter: certificate.validToDate.toISOString(),
    })
  },
)

test('the certificate of a domain without a dot is only for the domain', async () => {
  await using at = await startUnknownHosts({ domain: 'localhost' })
  await at.keep()
  const { certificate } = await at.kept()
  expect(certificate.subjectAltName).toBe('DNS:localhost')
  await at.keep()
  expect((await at.kept()).certificate.serialNumber).toBe(certificate.serialNumber)
})

test('the certificate is renewed at two thirds of its lifetime, not before', async () => {
  await using at = await startUnknownHosts()
  const first = await at.keep()
  const { metadata } = await at.kept()
  expect(await at.keep(59)).toEqual(first)
  expect((await at.kept()).metadata?.resourceVersion).toBe(metadata?.resourceVersion)
  const second = await at.keep(61)
  expect(second.notBefore > first.notBefore).toBe(true)
  expect((await at.kept()).certificate.validFromDate.toISOString()).toBe(second.notBefore)
})

const another = await issueCertificate({ ca, names: ['*.other.test'], now: new Date(begin) })
test.each([
  { damage: 'of which a part is rubbish', data: { 'tls.crt': 'bm8=' } },
  { damage: 'with another’s key', data: encodeSecret({ 'tls.key': another.key }) },
  { damage: 'that is of another domain', data: encodeSecret({ 'tls.crt': another.certificate, 'tls.key': another.key }) },
  { damage: 'that was deleted', data: undefined },
])('a Secret $damage is repaired', async ({ data }) => {
  await using at = await startUnknownHosts()
  await at.keep()
  if (data) await at.store.mergePatch(Secret, unknownHostsKey, { data })
  else await at.store.delete(Secret, unknownHostsKey)
  await at.keep()
  const { certificate, privateKey } = await at.kept()
  expect(certificate.subjectAltName).toBe('DNS:*.t.test, DNS:t.test')
  expect(certificate.checkPrivateKey(createPrivateKey(privateKey))).toBe(true)
})

test('a Secret that lost its label or owner gets them back, with the same certificate', async () => {
  await using at = await startUnknownHosts()
  await at.keep()
  const before = await at.kept()
  await at.store.mergePatch(Secret, unknownHostsKey, {
    metadata: { labels: { 'mooring.dev/endpoint': 'us' }, ownerReferences: [] },
  })
  await at.keep()
  const after = await at.kept()
  expect(after.certificate.serialNumber).toBe(before.certificate.serialNumber)
  expect(after.metadata?.labels).toEqual(before.metadata?.labels)
  expect(after.metadata?.ownerReferences).toEqual(before.metadata?.ownerReferences)
})

test('a certificate of a former CA is replaced', async () => {
  await using at = await startUnknownHosts()
  await at.keep()
  await at.keep(0, otherCa)
  expect((await at.kept()).certificate.verify(new X509Certificate(otherCa.certificate).publicKey)).toBe(true)
})

test.each([
  { what: 'host keys', name: hostKeysSecret('a.test') },
  { what: 'the certificate of its mesh', name: meshSecret('a') },
  { what: 'the certificate for unknown hosts', name: unknownHostsSecret('a') },
])('$what: differ at the first call, and when changed or deleted since the last one', async ({ name }) => {
  await using opened = await openTemporaryStore()
  const { store } = opened
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  const changes = createSecretChanges(store)
  const { metadata, spec } = endpoint({ domain: 'a.test' })
  const a = { metadata: { ...metadata, name: 'a' }, spec }
  expect(await changes.differ(a)).toBe(true)
  expect(await changes.differ(a)).toBe(false)

  const made = await store.create(Secret, { metadata: keyIn(name), data: { 'tls.key': 'AA==' } })
  expect(await changes.differ(a)).toBe(true)
  await store.replace(Secret, { ...made, data: { 'tls.key': 'AQ==' } })
  expect(await changes.differ(a)).toBe(true)
  expect(await changes.differ(a)).toBe(false)
  await store.delete(Secret, keyIn(name))
  expect(await changes.differ(a)).toBe(true)

  changes.forget('a')
  expect(await changes.differ(a)).toBe(true)
})
