import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { codeOf, type Tunnel } from '../../support/api/answers.ts'
import { acmeArguments, ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { type Person, person } from '../../support/edge/openssh.ts'
import { startLocalServer, visit } from '../../support/edge/visitor.ts'
import { freePort } from '../../support/free-port.ts'
import { LATER } from '../../support/patience.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

const opened = new AsyncDisposableStack()
let pebble: Pebble
let mooring: Mooring
let user: Person
let localPort: number

beforeAll(async () => {
  const httpPort = await freePort()
  // As Let's Encrypt does now and then, Pebble rejects nonces, and asks to wait between polls.
  pebble = opened.use(
    await startPebble({ httpPort, env: { PEBBLE_WFE_NONCEREJECT: '20' }, config: { retryAfter: { authz: 3, order: 5 } } }),
  )
  mooring = opened.use(await startMooring({ args: acmeArguments(pebble, httpPort) }))
  user = opened.use(await person())
  ;({ port: localPort } = opened.use(await startLocalServer()))
})
afterAll(() => opened.disposeAsync())

async function create(name: string, config: object = {}): Promise<Tunnel> {
  const { regionId } = mooring.ready
  const answer = await mooring.call('POST', TUNNELS, {
    body: { name, regionId, config: { authorizedKeys: [user.publicKey], ...config } },
  })
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

test('a tunnel whose settings reject the CA gets its certificate: the edge answers challenges before it decides', async () => {
  await valid(await create('closed', { ingressIPWhitelist: ['203.0.113.7'], httpsOnly: true }))
})

test('other challenges reach the backend, so that a tenant can have certificates of its own', async () => {
  const tunnel = await create('own')
  await valid(tunnel)
  await using client = await user.forward(tunnel, localPort)
  const path = '/.well-known/acme-challenge/of-the-tenant'
  await vi.waitFor(async () => {
    const answer = await visit('', tunnel, path, { scheme: 'http' })
    expect([answer.status, answer.headers['mooring-error']], client.said()).toEqual([200, undefined])
  }, LATER)
})

test('the token of a challenge is answered for its own host only, and not after the order', async () => {
  const tunnel = await create('token')
  await valid(tunnel)
  const asked = await mooring.call('GET', `${TUNNELS}/${tunnel.id}/requests?reason=acme_challenge`)
  const [request] = asked.body.data.requests
  expect(request).toMatchObject({ status: 200, origin: 'edge' })
  const answer = await visit('', tunnel, request?.path, { scheme: 'http' })
  expect([answer.status, answer.headers['mooring-error']]).toEqual([503, 'tunnel_offline'])
})

test('ten tunnels made at once need ten orders, one for each', async () => {
  const before = pebble.count(ORDERS)
  const tunnels = await Promise.all(Array.from({ length: 10 }, (_, index) => create(`many-${index}`)))
  const certificates = await Promise.all(tunnels.map(valid))
  expect(new Set(certificates.map(({ domain }) => domain)).size).toBe(10)
  expect(pebble.count(ORDERS) - before).toBe(10)
})

test('a deleted tunnel leaves neither certificate nor order, and metrics count what happened', async () => {
  const metrics = await (await fetch(mooring.ready.metricsUrl)).text()
  expect(metrics).toMatch(/mooring_acme_orders_total\{result="issued"\} 13\n/)
  expect(metrics).toMatch(/mooring_acme_budget_remaining\{endpoint="tunnel-example-test"\} \d+\n/)
  expect(metrics).toMatch(/mooring_certificate_expiry_timestamp_seconds\{of="tunnels"\} \d/)
  const tunnel = await create('gone')
  expect((await mooring.call('DELETE', `${TUNNELS}/${tunnel.id}`)).status).toBe(200)
  await vi.waitFor(async () => expect((await mooring.call('GET', `${TUNNELS}/${tunnel.id}`)).status).toBe(404), LATER)
})

test('no log line has a private key', () => {
  expect(mooring.output()).not.toContain('PRIVATE KEY')
})
