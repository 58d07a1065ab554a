import { once } from 'node:events'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Bind, dnsArguments, startBind } from '../../support/acme/bind.ts'
import { acmeArguments, ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { codeOf, type Tunnel } from '../../support/api/answers.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { freePort } from '../../support/free-port.ts'
import { LATER } from '../../support/patience.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'
const UNLIMITED = ['--write-rate', '10000', '--write-burst', '10000', '--read-rate', '10000', '--read-burst', '10000']
const RECORD = '_acme-challenge.tunnel.example.test'

const opened = new AsyncDisposableStack()
let bind: Bind
let pebble: Pebble
let mooring: Mooring

beforeAll(async () => {
  const httpPort = await freePort()
  bind = opened.use(await startBind())
  pebble = opened.use(await startPebble({ httpPort, nameserver: bind.address }))
  mooring = opened.use(await startMooring({ args: [...acmeArguments(pebble, httpPort), ...dnsArguments(bind), ...UNLIMITED] }))
})
afterAll(() => opened.disposeAsync())

async function create(name: string): Promise<Tunnel> {
  const answer = await mooring.call('POST', TUNNELS, { body: { name, regionId: mooring.ready.regionId } })
  expect(codeOf(answer)).toBe('201 OK')
  return answer.body.data.tunnel
}

const certificateOf = async ({ id }: Tunnel) => (await mooring.call('GET', `${TUNNELS}/${id}/certificate`)).body.data.certificate

const valid = (tunnel: Tunnel) =>
  vi.waitFor(async () => {
    const certificate = await certificateOf(tunnel)
    expect(certificate, mooring.output().slice(-2000)).toMatchObject({ status: 'valid', lastError: null, nextAttemptAt: null })
    return certificate
  }, LATER)

test('fifty tunnels made at once share one wildcard certificate, of one order', async () => {
  const tunnels = await Promise.all(Array.from({ length: 50 }, (_, index) => create(`many-${index}`)))
  const certificates = await Promise.all(tunnels.map(valid))
  expect(new Set(certificates.map((each) => JSON.stringify(each))).size).toBe(1)
  expect(certificates[0]?.domain).toBe('*.tunnel.example.test')
  expect(certificates[0]?.issuer).toContain('Pebble')
  expect(pebble.count(ORDERS)).toBe(1)
  const root = await pebble.root()
  for (const { hostname, endpoint } of tunnels.slice(0, 3)) {
    const servername = `${hostname}.${endpoint.domain}`
    const socket = connect({ port: endpoint.httpsPort, host: '127.0.0.1', servername, ca: root })
    await once(socket, 'secureConnect')
    expect(socket.getPeerCertificate().subjectaltname).toBe('DNS:*.tunnel.example.test')
    socket.destroy()
  }
})

test('no record is left in DNS after the order', async () => {
  await vi.waitFor(async () => expect(await bind.texts(RECORD)).toEqual([]), LATER)
  expect(bind.log()).toMatch(/adding an RR at '_acme-challenge\.tunnel\.example\.test' TXT/)
})
