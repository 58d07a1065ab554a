import { readFile } from 'node:fs/promises'
import { once } from 'node:events'
import { connect, type PeerCertificate } from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { codeOf, type Tunnel } from '../support/api/answers.ts'
import { acmeArguments, type Pebble, startPebble } from '../support/acme/pebble.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { type Person, person } from '../support/edge/openssh.ts'
import { startLocalServer, visit } from '../support/edge/visitor.ts'
import { freePort } from '../support/free-port.ts'
import { LATER } from '../support/patience.ts'

/** Certificates of tunnels from Pebble, a certificate authority by ACME. What else may happen is in test/faults/acme/. */

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

const opened = new AsyncDisposableStack()
let pebble: Pebble
let mooring: Mooring
let user: Person
let localPort: number

beforeAll(async () => {
  const httpPort = await freePort()
  // As Let's Encrypt does now and then, Pebble rejects nonces.
  pebble = opened.use(await startPebble({ httpPort, env: { PEBBLE_WFE_NONCEREJECT: '20' } }))
  mooring = opened.use(await startMooring({ args: acmeArguments(pebble, httpPort) }))
  user = opened.use(await person())
  ;({ port: localPort } = opened.use(await startLocalServer()))
})
afterAll(() => opened.disposeAsync())

async function create(name: string): Promise<Tunnel> {
  const { regionId } = mooring.ready
  const body = { name, regionId, config: { authorizedKeys: [user.publicKey] } }
  const answer = await mooring.call('POST', TUNNELS, { body })
  expect(codeOf(answer)).toBe('201 OK')
  return answer.body.data.tunnel
}

const certificateOf = async ({ id }: Tunnel) => (await mooring.call('GET', `${TUNNELS}/${id}/certificate`)).body.data.certificate

const valid = (tunnel: Tunnel) =>
  vi.waitFor(async () => {
    const certificate = await certificateOf(tunnel)
    expect(certificate).toMatchObject({ status: 'valid', lastError: null, nextAttemptAt: null })
    return certificate
  }, LATER)

/** Certificate that a visitor gets, verified with these roots. */
async function presented({ hostname, endpoint }: Tunnel, ca: string): Promise<PeerCertificate> {
  const socket = connect({ port: endpoint.httpsPort, host: '127.0.0.1', servername: `${hostname}.${endpoint.domain}`, ca })
  await once(socket, 'secureConnect')
  const certificate = socket.getPeerCertificate()
  socket.destroy()
  return certificate
}

test('a new tunnel answers at once, is served under the local CA, then under the certificate of the public one', async () => {
  const tunnel = await create('first')
  const host = `${tunnel.hostname}.tunnel.example.test`
  expect(tunnel.certificate).toMatchObject({ status: 'obtaining', domain: host, issuer: null, obtainedAt: null })
  const certificate = await valid(tunnel)
  expect(certificate).toMatchObject({ domain: host })
  expect(certificate.issuer).toMatch(/^Pebble Intermediate CA/)
  expect(Date.parse(certificate.expiresAt) - Date.now()).toBeGreaterThan(80 * 86_400_000)
  const root = await pebble.root()
  expect((await presented(tunnel, root)).subjectaltname).toBe(`DNS:${host}`)
  await expect(presented(tunnel, await readFile(mooring.ready.ca, 'utf8'))).rejects.toThrow()
  await using client = await user.forward(tunnel, localPort)
  await vi.waitFor(async () => expect((await visit(root, tunnel)).status, client.said()).toBe(200), LATER)
})
