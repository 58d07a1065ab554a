import { once } from 'node:events'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { acmeArguments, ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { codeOf, type Tunnel } from '../../support/api/answers.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { freePort } from '../../support/free-port.ts'
import { LATER } from '../../support/patience.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

const opened = new AsyncDisposableStack()
let pebble: Pebble
let mooring: Mooring

beforeAll(async () => {
  const [httpPort, tlsPort] = [await freePort(), await freePort()]
  // Pebble cannot use http-01: nothing listens on its port for that.
  pebble = opened.use(await startPebble({ httpPort: await freePort(), tlsPort }))
  const args = [...acmeArguments(pebble, httpPort), '--acme-challenge', 'tls-alpn-01', '--https-port', String(tlsPort)]
  mooring = opened.use(await startMooring({ args }))
})
afterAll(() => opened.disposeAsync())

async function create(name: string): Promise<Tunnel> {
  const answer = await mooring.call('POST', TUNNELS, { body: { name, regionId: mooring.ready.regionId } })
  expect(codeOf(answer)).toBe('201 OK')
  return answer.body.data.tunnel
}

const valid = ({ id }: Tunnel) =>
  vi.waitFor(async () => {
    const { certificate } = (await mooring.call('GET', `${TUNNELS}/${id}/certificate`)).body.data
    expect(certificate, mooring.output().slice(-2000)).toMatchObject({ status: 'valid', lastError: null, nextAttemptAt: null })
    return certificate
  }, LATER)

test('a public CA verifies a tunnel by port 443 alone, and visitors get its certificate', async () => {
  const tunnel = await create('first')
  const host = `${tunnel.hostname}.tunnel.example.test`
  expect(await valid(tunnel)).toMatchObject({ domain: host, issuer: expect.stringMatching(/^Pebble/) as string })
  const socket = connect({ port: tunnel.endpoint.httpsPort, host: '127.0.0.1', servername: host, ca: await pebble.root() })
  await once(socket, 'secureConnect')
  expect(socket.getPeerCertificate().subjectaltname).toBe(`DNS:${host}`)
  socket.destroy()
})

test('ten tunnels made at once need ten orders', async () => {
  const before = pebble.count(ORDERS)
  await Promise.all((await Promise.all(Array.from({ length: 10 }, (_, index) => create(`many-${index}`)))).map(valid))
  expect(pebble.count(ORDERS) - before).toBe(10)
})

test('without an order, the protocol of the challenge is rejected', async () => {
  const tunnel = await create('later')
  await valid(tunnel)
  const servername = `${tunnel.hostname}.tunnel.example.test`
  const ALPNProtocols = ['acme-tls/1']
  const socket = connect({
    port: tunnel.endpoint.httpsPort,
    host: '127.0.0.1',
    servername,
    ALPNProtocols,
    rejectUnauthorized: false,
  })
  await expect(once(socket, 'secureConnect')).rejects.toThrow(/no application protocol/)
})
