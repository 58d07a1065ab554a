import { X509Certificate } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { createCa, type KeyPair } from '../../certificates/local-ca.ts'
import { currentCertificate, isFor } from './certificate.ts'

const names = ['pg-1.mooring-shared.svc', '10.96.0.7']
const now = new Date()
let ca: KeyPair
let stored: KeyPair
beforeAll(async () => {
  ca = await createCa(now)
  stored = await currentCertificate(undefined, { ca, names, now })
})

test('a certificate is kept while it is good for every name', async () => {
  expect(await currentCertificate(stored, { ca, names, now })).toBe(stored)
  const renewed = await currentCertificate(stored, { ca, names: [...names, '192.0.2.1'], now })
  expect(isFor(new X509Certificate(renewed.certificate), '192.0.2.1')).toBe(true)
})

test.each([
  { does: 'is no certificate', spoil: (pair: KeyPair) => ({ ...pair, certificate: 'nonsense' }) },
  { does: 'is no key', spoil: (pair: KeyPair) => ({ ...pair, key: 'nonsense' }) },
  { does: 'has the key of another', spoil: async (pair: KeyPair) => ({ ...pair, key: (await createCa(now)).key }) },
])('a value of the Secret that $does is replaced', async ({ spoil }) => {
  const spoilt = await spoil(stored)
  expect(await currentCertificate(spoilt, { ca, names, now })).not.toBe(spoilt)
})

test.each([
  { host: 'pg-1.mooring-shared.svc', good: true },
  { host: '10.96.0.7', good: true },
  { host: '10.96.0.8', good: false },
  { host: 'other.svc', good: false },
])('a caller of $host accepts the certificate: $good', ({ host, good }) => {
  expect(isFor(new X509Certificate(stored.certificate), host)).toBe(good)
})
