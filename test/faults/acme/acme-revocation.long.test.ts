import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { Tunnel as TunnelKind } from '../../../crds/tunnel.ts'
import { keyPairIn } from '../../../operator/secret-data.ts'
import { conditionOf } from '../../../store/conditions.ts'
import { acmeArguments, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { codeOf, type Tunnel } from '../../support/api/answers.ts'
import { openStateOf } from '../../support/deployment/data-directory.ts'
import { type MortalMooring, startMortal } from '../../support/deployment/mortal-mooring.ts'
import { freePort } from '../../support/free-port.ts'
import { LATER } from '../../support/patience.ts'

/** Revocation of the certificates of deleted tunnels (RFC 8555, section 7.6), with `kill -9` at each step of it. */

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

const opened = new AsyncDisposableStack()
let httpPort: number
let pebble: Pebble
let mooring: MortalMooring

beforeAll(async () => {
  httpPort = await freePort()
  pebble = await startPebble({ httpPort })
  opened.defer(() => pebble[Symbol.asyncDispose]())
  mooring = opened.use(await startMortal({ args: [...acmeArguments(pebble, httpPort), '--acme-revoke-on-delete'] }))
})
afterAll(() => opened.disposeAsync())

/** Creates a tunnel, and returns it with its certificate (PEM). */
async function certified(name: string): Promise<Tunnel & { readonly pem: string }> {
  const body = { name, regionId: mooring.living().ready.regionId }
  const answer = await mooring.call('POST', TUNNELS, { body })
  expect(codeOf(answer)).toBe('201 OK')
  const { tunnel } = answer.body.data
  await vi.waitFor(async () => {
    const { certificate } = (await mooring.call('GET', `${TUNNELS}/${tunnel.id}/certificate`)).body.data
    expect(certificate).toMatchObject({ status: 'valid' })
  }, LATER)
  await using copy = await openStateOf(mooring.dataDir)
  const secret = await copy.store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: `tunnel-${tunnel.hostname}-certificate` })
  return { ...tunnel, pem: secret ? keyPairIn(secret).certificate : '' }
}

const remove = ({ id }: Tunnel) => mooring.call('DELETE', `${TUNNELS}/${id}`)

const expectGone = ({ id }: Tunnel) =>
  vi.waitFor(async () => expect((await mooring.call('GET', `${TUNNELS}/${id}`)).status).toBe(404), LATER)

const REVOKED = { Status: 'Revoked', Reason: 5 }

test('the deletion of a tunnel revokes its certificate', async () => {
  const tunnel = await certified('one')
  expect(await pebble.statusOf(tunnel.pem)).toMatchObject({ Status: 'Valid' })
  expect((await remove(tunnel)).status).toBe(200)
  expect(await pebble.statusOf(tunnel.pem)).toMatchObject(REVOKED)
})

test.each(['tunnel.revoked', 'tunnel.forget-certificate', 'tunnel.release'])(
  'after kill -9 at %s the certificate is revoked and the tunnel gone',
  async (step) => {
    const tunnel = await certified(step.replace('tunnel.', ''))
    await mooring.expectKilledAt(step, () => remove(tunnel))
    await mooring.start()
    await expectGone(tunnel)
    expect(await pebble.statusOf(tunnel.pem)).toMatchObject(REVOKED)
  },
)

test('a CA that does not answer holds up the deletion; once it rejects the revocation, the tunnel goes', async () => {
  const tunnel = await certified('held')
  await pebble[Symbol.asyncDispose]()
  const answer = remove(tunnel)
  await vi.waitFor(async () => {
    await using copy = await openStateOf(mooring.dataDir)
    const found = (await copy.store.list(TunnelKind)).items.find(({ status }) => status?.hostname === tunnel.hostname)
    const ready = found && conditionOf(found, 'Ready')
    expect(ready).toMatchObject({ status: 'False', reason: 'RevokingCertificate' })
    expect(ready?.message).toMatch(/cannot be reached/)
  }, LATER)
  // Another CA at the same address, which knows neither the account nor the certificate.
  const { port, authority } = pebble
  pebble = await startPebble({ httpPort, port, authority })
  await answer
  await expectGone(tunnel)
  expect(mooring.living().output()).toMatch(/CertificateNotRevoked/)
})
