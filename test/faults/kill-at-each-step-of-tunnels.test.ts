// Its tests build on each other:
// @module-tag whole-file
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { annotations, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { HOSTNAME, Tunnel } from '../../crds/tunnel.ts'
import { codeOf, type Tunnel as TunnelRecord } from '../support/api/answers.ts'
import { startLocalServer, visit } from '../support/edge/visitor.ts'
import { type MortalMooring, startMortal } from '../support/deployment/mortal-mooring.ts'
import { openStateOf } from '../support/deployment/data-directory.ts'
import { type Person, person } from '../support/edge/openssh.ts'
import { LATER } from '../support/patience.ts'
import { onlyInFull } from '../support/scope.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

/** Cleanup of this file, which uses one data directory for all crashes: each start also has the leftovers of earlier crashes. */
const opened = new AsyncDisposableStack()
let mooring: MortalMooring
let user: Person
let port: number
/** Tunnel that exists during all crashes. */
let old: TunnelRecord

beforeAll(async () => {
  mooring = opened.use(await startMortal())
  user = opened.use(await person())
  ;({ port } = opened.use(await startLocalServer()))
  old = await create('old')
})
afterAll(() => opened.disposeAsync())

const post = (key: string) =>
  mooring.call('POST', TUNNELS, {
    body: { name: key, regionId: mooring.living().ready.regionId, config: { authorizedKeys: [user.publicKey] } },
    headers: { 'Idempotency-Key': key },
  })

async function create(key: string): Promise<TunnelRecord> {
  const answer = await post(key)
  expect(codeOf(answer)).toBe('201 OK')
  return answer.body.data.tunnel
}

/** Returns the hostname in the status of a tunnel, or else the one reserved for it in its annotation. */
const hostnameOf = ({ metadata, status }: Tunnel) =>
  status?.hostname ?? metadata.annotations?.[annotations.hostname]?.split('.')[0]

/** Reads the state on disk: hostnames by the display names of tunnels, and certificates by the names of their Secrets. */
async function state() {
  await using copy = await openStateOf(mooring.dataDir)
  const { items: tunnels } = await copy.store.list(Tunnel)
  const { items: secrets } = await copy.store.list(Secret, { namespace: SYSTEM_NAMESPACE })
  const own = secrets.filter(({ metadata }) => /^tunnel-.*-certificate$/.test(metadata.name))
  return {
    hostnames: new Map(tunnels.map((tunnel) => [tunnel.spec.displayName, hostnameOf(tunnel)])),
    certificates: new Map(own.map(({ metadata, data }) => [metadata.name, data['tls.crt']])),
  }
}

const certificateOf = (hostname = '') => `tunnel-${hostname}-certificate`

/** Fails unless each tunnel has one hostname and each hostname has one certificate. */
async function expectOneOfEach(): Promise<void> {
  const { tunnels } = (await mooring.call('GET', `${TUNNELS}?limit=200`)).body.data
  const { hostnames, certificates } = await state()
  expect(hostnames).toEqual(new Map(tunnels.map(({ name, hostname }) => [name, hostname])))
  expect([...certificates.keys()].toSorted()).toEqual(tunnels.map(({ hostname }) => certificateOf(hostname)).toSorted())
}

const visited = async (tunnel: TunnelRecord) => visit(await readFile(mooring.living().ready.ca, 'utf8'), tunnel)

async function expectServed(tunnel: TunnelRecord): Promise<void> {
  await using client = await user.forward(tunnel, port)
  await vi.waitFor(async () => expect((await visited(tunnel)).status).toBe(200), LATER)
  expect(client.said()).toContain(tunnel.url)
}

test.each(['tunnel.obtain', ...onlyInFull('tunnel.mark', 'tunnel.assign')])(
  'a repeated request gets the tunnel with the reserved hostname and one certificate after kill -9 at %s',
  async (step) => {
    expect(await mooring.expectKilledAt(step, () => post(step))).toBeUndefined()
    const before = await state()
    const drawn = before.hostnames.get(step)
    await mooring.start()
    const tunnel = await create(step)
    expect(drawn).toMatch(HOSTNAME)
    expect([tunnel.hostname, tunnel.certificate.status]).toEqual([drawn, 'valid'])
    expect(await create(step)).toEqual(tunnel)
    await expectOneOfEach()
    // An existing certificate is not signed again.
    const name = certificateOf(drawn)
    const signed = (await state()).certificates.get(name)
    expect(before.certificates.get(name)).toBe(step === 'tunnel.obtain' ? signed : undefined)
    await expectServed(tunnel)
  },
)

test.each(['tunnel.release', ...onlyInFull('tunnel.forget-certificate')])(
  'a deletion finishes without help, ends the service and frees its key after kill -9 at %s',
  async (step) => {
    const tunnel = await create(step)
    await mooring.dieAt(step, () => mooring.call('DELETE', `${TUNNELS}/${tunnel.id}`))
    await expect.poll(async () => (await mooring.call('GET', `${TUNNELS}/${tunnel.id}`)).status, LATER).toBe(404)
    await expectOneOfEach()
    const { endpoint } = (await mooring.call('GET', `${TUNNELS}/${old.id}`)).body.data.tunnel
    expect(await visited({ ...tunnel, endpoint })).toMatchObject({ status: 404, headers: { 'mooring-error': 'unknown_host' } })
    const next = await create(step)
    expect(next.id).not.toBe(tunnel.id)
    expect(next.hostname).not.toBe(tunnel.hostname)
    await expectOneOfEach()
  },
)

test('a tunnel that existed during all crashes is unchanged and served', async () => {
  const { tunnel } = (await mooring.call('GET', `${TUNNELS}/${old.id}`)).body.data
  expect(tunnel).toMatchObject({ hostname: old.hostname, url: old.url, certificate: old.certificate })
  await expectServed(tunnel)
})
