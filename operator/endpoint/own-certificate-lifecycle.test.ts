import { expect, test } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { conditionOf } from '../../store/conditions.ts'
import { ca, DAY, startTunnels } from '../../test/support/operator/tunnel-controllers.ts'
import { createCa, issueCertificate, type KeyPair } from '../certificates/local-ca.ts'
import { encodeSecret, keyPairIn } from '../secret-data.ts'

const POLL_MS = 10_100
const key = (name: string) => ({ namespace: SYSTEM_NAMESPACE, name })
const dataOf = ({ certificate, key: own }: KeyPair) => encodeSecret({ 'tls.crt': certificate, 'tls.key': own })
const OWN = { certificates: 'wildcard', tlsSecretName: 'own' }

async function setUp(spec: object = OWN) {
  const at = await startTunnels()
  await at.makeRegion()
  await at.makeEndpoint('a', spec)
  const { store } = at
  const issued = (name = '*.a.test') => issueCertificate({ ca, names: [name], now: at.now() })
  return {
    ...{ at, store, issued },
    give: (pair: KeyPair) => store.create(Secret, { metadata: key('own'), type: 'kubernetes.io/tls', data: dataOf(pair) }),
    replace: (pair: KeyPair) => store.mergePatch(Secret, key('own'), { data: dataOf(pair) }),
    served: async () => {
      const found = await store.get(Secret, key('endpoint-a-certificate'))
      return found && keyPairIn(found).certificate
    },
    endpoint: () => store.get(TunnelEndpoint, { name: 'a' }),
    [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
  }
}

test('a tunnel waits for the Secret, gets its certificate, and each later one, without a restart', async () => {
  await using own = await setUp()
  const { at, give, replace, issued, served, endpoint } = own
  await at.makeTunnel()
  const failed = await at.until('web', ({ status }) => status?.certificate?.status === 'failed')
  expect(failed.status?.certificate?.lastError).toMatch(/^the Secret own in mooring-system does not exist/)
  expect(conditionOf(failed, 'Ready')).toMatchObject({ status: 'False', reason: 'ObtainingCertificate' })
  expect(conditionOf((await endpoint()) ?? {}, 'Ready')?.reason).toBe('CertificateUnusable')

  const first = await issued()
  await give(first)
  await at.advance(POLL_MS)
  const valid = await at.reason('Assigned')
  expect(valid.status?.certificate).toMatchObject({ status: 'valid', domain: '*.a.test' })
  expect(valid.status?.certificate?.lastError).toBeUndefined()
  expect(await served()).toBe(first.certificate)

  const second = await issued()
  await replace(second)
  await at.advance(POLL_MS)
  await at.until('web', ({ status }) => status?.certificate?.obtainedAt !== valid.status?.certificate?.obtainedAt)
  expect(await served()).toBe(second.certificate)
})

test('an unusable Secret replaces nothing: the former certificate serves until it expires', async () => {
  await using own = await setUp()
  const { at, give, replace, issued, served, endpoint } = own
  // It expires in a minute.
  const first = await issueCertificate({ ca, names: ['*.a.test'], now: new Date(at.now().getTime() - 90 * DAY + 60_000) })
  await give(first)
  await at.makeTunnel()
  await at.advance(POLL_MS)
  await at.reason('Assigned')
  await replace(await issued('*.b.test'))
  await at.advance(POLL_MS)
  const kept = await at.until('web', ({ status }) => status?.certificate?.lastError !== undefined)
  expect(kept.status?.certificate).toMatchObject({ status: 'valid' })
  expect(kept.status?.certificate?.lastError).toMatch(/is for \*\.b\.test; it must be for \*\.a\.test$/)
  expect(conditionOf(kept, 'Ready')?.status).toBe('True')
  expect(await served()).toBe(first.certificate)

  await at.advance(60_000)
  const ended = await at.until('web', ({ status }) => status?.certificate?.status === 'expired')
  expect(conditionOf(ended, 'Ready')).toMatchObject({ status: 'False', reason: 'ObtainingCertificate' })
  expect((await endpoint())?.status?.certificate?.status).toBe('expired')
})

test('an endpoint whose Secret is withdrawn gets a certificate of the installation again', async () => {
  await using own = await setUp()
  const { at, store, give, served, endpoint } = own
  const first = await issueCertificate({ ca: await createCa(at.now()), names: ['*.a.test'], now: at.now() })
  await give(first)
  await at.makeTunnel()
  await at.advance(POLL_MS)
  const given = await at.reason('Assigned')
  await store.mergePatch(TunnelEndpoint, { name: 'a' }, { spec: { tlsSecretName: null } })
  await at.until('web', ({ status }) => status?.certificate?.issuer !== given.status?.certificate?.issuer)
  expect(await served()).not.toBe(first.certificate)
  await expect.poll(async () => (await endpoint())?.status?.certificate).toBeUndefined()
})
