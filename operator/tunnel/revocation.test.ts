import { expect, test } from 'vitest'
import type { Secret } from '../../crds/core.ts'
import { annotations } from '../../crds/names.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { AcmeSettings } from '../../crds/tunnel-endpoint.ts'
import type { Acme } from '../acme/acme.ts'
import { AcmeError } from '../acme/acme-error.ts'
import { createCa, issueCertificate } from '../certificates/local-ca.ts'
import { encodeSecret } from '../secret-data.ts'
import type { Issuers } from './certificate-issuer.ts'
import type { ObserveDeps } from './observe.ts'
import { createRevoker } from './revocation.ts'

const BEGAN = Date.now()
const MINUTE = 60_000
const DIRECTORY = 'https://ca.example/dir'
const settings = { directoryUrl: DIRECTORY } as AcmeSettings
const issued = await issueCertificate({ ca: await createCa(new Date()), names: ['a.test'], now: new Date() })

const tunnel = (deletedAt = BEGAN): Tunnel => {
  const metadata = { name: 'web', namespace: 'acme--prod', deletionTimestamp: new Date(deletedAt).toISOString() }
  return { metadata, status: { hostname: '0123456789abcdef' } } as Tunnel
}

/** Revoker of a tunnel with one certificate; `fail` is thrown by the CA. */
function open(about: { readonly directory?: string; readonly afterMs?: number } = {}) {
  const { directory = DIRECTORY, afterMs = 0 } = about
  const ca = { asked: 0, fail: undefined as Error | undefined, time: BEGAN + afterMs }
  const data = encodeSecret({ 'tls.crt': issued.certificate, 'tls.key': issued.key })
  const secret = { metadata: { annotations: { [annotations.acmeDirectory]: directory } }, data } as unknown as Secret
  const acme: Pick<Acme, 'revoke' | 'progress'> = {
    progress: () => Promise.resolve(undefined),
    revoke: () => {
      ca.asked += 1
      return ca.fail ? Promise.reject(ca.fail) : Promise.resolve()
    },
  }
  const deps = {
    store: { get: () => Promise.resolve(secret) },
    issuers: { acme } as unknown as Issuers,
    now: () => new Date(ca.time),
  } as unknown as ObserveDeps
  const revoker = createRevoker(deps)
  return { ca, revoke: (of = tunnel()) => revoker.revoke(of, settings) }
}

const unreachable = new AcmeError('acme_unreachable', 'no answer')

test.each([
  { does: 'revokes a certificate of the CA', about: {}, asked: 1 },
  { does: 'leaves a certificate of another CA alone', about: { directory: 'https://other.example/dir' }, asked: 0 },
  { does: 'leaves an expired certificate alone', about: { afterMs: 20 * 365 * 24 * 60 * MINUTE }, asked: 0 },
])('the deletion of a tunnel $does', async ({ about, asked }) => {
  const at = open(about)
  expect(await at.revoke()).toBeUndefined()
  expect(at.ca.asked).toBe(asked)
})

test.each([
  { name: 'no answer', error: unreachable, afterMs: 0, reason: 'RevokingCertificate' },
  { name: 'no answer after 9 minutes', error: unreachable, afterMs: 9 * MINUTE, reason: 'RevokingCertificate' },
  { name: 'no answer after 10 minutes', error: unreachable, afterMs: 10 * MINUTE, reason: 'CertificateNotRevoked' },
  {
    ...{ name: 'a rejection', afterMs: 0, reason: 'CertificateNotRevoked' },
    error: new AcmeError('acme_rejected', 'no', { type: 'unauthorized', status: 403 }),
  },
  {
    ...{ name: 'a reached limit', afterMs: 0, reason: 'RevokingCertificate' },
    error: new AcmeError('acme_rejected', 'later', { type: 'rateLimited', status: 429 }),
  },
])('$name of the CA results in $reason', async ({ error, afterMs, reason }) => {
  const at = open({ afterMs })
  at.ca.fail = error
  const held = await at.revoke()
  expect(held?.decision).toMatchObject({ status: 'False', reason, message: expect.stringContaining(error.message) as string })
  expect(held?.requeueAfterMs).toBeLessThanOrEqual(MINUTE)
})

test('a CA that does not answer is asked once in 15 s, however many tunnels are deleted', async () => {
  const at = open()
  at.ca.fail = unreachable
  const deleted = Array.from({ length: 20 }, () => tunnel())
  for (const each of deleted) expect((await at.revoke(each))?.decision.reason).toBe('RevokingCertificate')
  expect(at.ca.asked).toBe(1)
  at.ca.time += 15_000
  await Promise.all(deleted.map(at.revoke))
  expect(at.ca.asked).toBe(2)
  at.ca.fail = undefined
  at.ca.time += 15_000
  expect(await at.revoke()).toBeUndefined()
  expect(await at.revoke()).toBeUndefined()
})
