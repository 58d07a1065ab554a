import { createPrivateKey, X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { Namespace, Secret } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { unknownHostsSecret } from '../../../shared/edge-objects.ts'
import { openTemporaryStore } from '../../../test/support/store/temporary-store.ts'
import { createCa, issueCertificate } from '../../certificates/local-ca.ts'
import { decodeSecret, encodeSecret } from '../../secret-data.ts'
import { endpoint } from '../../../test/support/operator/edge-objects.ts'
import { keyIn } from './names.ts'
import { createUnknownHostsKeeper } from './unknown-hosts-secret.ts'

const DAY = 86_400_000
const begin = Date.now()
const key = keyIn(unknownHostsSecret('eu'))
const [ca, otherCa] = await Promise.all([createCa(new Date(begin)), createCa(new Date(begin))])

async function start(spec: object = {}) {
  const opened = await openTemporaryStore()
  const { store } = opened
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  const eu = await store.create(TunnelEndpoint, { metadata: { name: 'eu' }, spec: endpoint(spec).spec })
  return {
    ...{ store, eu },
    keep: (days = 0, by = ca) => createUnknownHostsKeeper({ store, ca: () => by, now: () => new Date(begin + days * DAY) })(eu),
    async kept() {
      const { metadata, type, data } = (await store.get(Secret, key)) ?? { data: {} }
      const text = (name: string) => decodeSecret(data, name) ?? ''
      return { metadata, type, certificate: new X509Certificate(text('tls.crt')), privateKey: text('tls.key') }
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

test.each([{ issuer: 'local' }, { issuer: 'acme' }])(
  'with any issuer of tunnels ($issuer), the certificate is for the domain and its wildcard, signed by the local CA',
  async ({ issuer }) => {
    await using at = await start({ issuer })
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
  await using at = await start({ domain: 'localhost' })
  await at.keep()
  const { certificate } = await at.kept()
  expect(certificate.subjectAltName).toBe('DNS:localhost')
  await at.keep()
  expect((await at.kept()).certificate.serialNumber).toBe(certificate.serialNumber)
})

test('the certificate is renewed at two thirds of its lifetime, not before', async () => {
  await using at = await start()
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
  await using at = await start()
  await at.keep()
  if (data) await at.store.mergePatch(Secret, key, { data })
  else await at.store.delete(Secret, key)
  await at.keep()
  const { certificate, privateKey } = await at.kept()
  expect(certificate.subjectAltName).toBe('DNS:*.t.test, DNS:t.test')
  expect(certificate.checkPrivateKey(createPrivateKey(privateKey))).toBe(true)
})

test('a Secret that lost its label or owner gets them back, with the same certificate', async () => {
  await using at = await start()
  await at.keep()
  const before = await at.kept()
  await at.store.mergePatch(Secret, key, { metadata: { labels: { 'mooring.dev/endpoint': 'us' }, ownerReferences: [] } })
  await at.keep()
  const after = await at.kept()
  expect(after.certificate.serialNumber).toBe(before.certificate.serialNumber)
  expect(after.metadata?.labels).toEqual(before.metadata?.labels)
  expect(after.metadata?.ownerReferences).toEqual(before.metadata?.ownerReferences)
})

test('a certificate of a former CA is replaced', async () => {
  await using at = await start()
  await at.keep()
  await at.keep(0, otherCa)
  expect((await at.kept()).certificate.verify(new X509Certificate(otherCa.certificate).publicKey)).toBe(true)
})
