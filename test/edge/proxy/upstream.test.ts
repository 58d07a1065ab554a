import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { curl, TRANSPORTS } from '../../support/edge/visitor.ts'
import { DOMAIN, startProxy, selfSigned, tunnelBefore } from '../../support/edge/proxy-fixture.ts'
import { rawBackend, rawVisitor } from '../../support/edge/raw-http.ts'
import { freshHostname } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

/** Last decisions of an edge about a request: limits, and failures on the way to the backend. */

const cleanup = new AsyncDisposableStack()
afterAll(() => cleanup.disposeAsync())
const context = selfSigned(DOMAIN)
const contextFor = async () => context
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

const edge = cleanup.use(await startProxy({ contextFor, limits: { upstreamMs: 300, sweepMs: 20, holdMs: 50 } }))

/** Limit of the tests, and number of requests that wait for their backend, each on its own connection. */
const MOST = 5

async function full(bound: 'requestsPerTunnel' | 'connections' | 'connectionsPerSource') {
  const own = cleanup.use(await startProxy({ contextFor, limits: { [bound]: MOST, halfClosedMs: 50, sweepMs: 20 } }))
  const backend = cleanup.use(
    await rawBackend((received, socket) => {
      if (!received.includes('/waits')) socket.write(OK)
    }),
  )
  const { host } = own.serve('0000000000000001', backend.port)
  const other = own.serve('0000000000000002', backend.port).host
  const ask = `GET /waits HTTP/1.1\r\nHost: ${host}\r\n\r\n`
  const waiting = Array.from({ length: MOST }, () => rawVisitor(own.httpPort, ask))
  await vi.waitUntil(() => backend.received.length === MOST, SOON)
  return { own, host, other, leave: () => waiting.forEach(({ socket }) => socket.destroy()) }
}

describe.each(TRANSPORTS)('over %s', (transport) => {
  test.each<{ does: string; answer: Parameters<typeof rawBackend>[0]; status: number; reason: string }>([
    { does: 'that closes', answer: (_, socket) => socket.end(), status: 502, reason: 'upstream_reset' },
    { does: 'that resets', answer: (_, socket) => socket.resetAndDestroy(), status: 502, reason: 'upstream_reset' },
    {
      does: 'that closes within its head',
      answer: (_, socket) => socket.end('HTTP/1.1 2'),
      status: 502,
      reason: 'upstream_reset',
    },
    {
      does: 'that sends no HTTP',
      answer: (_, socket) => socket.write('SSH-2.0-x\r\n\r\n'),
      status: 502,
      reason: 'upstream_invalid',
    },
    { does: 'that sends nothing', answer: () => undefined, status: 504, reason: 'upstream_timeout' },
    {
      does: 'that sends only 103',
      answer: (_, socket) => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'),
      ...{ status: 504, reason: 'upstream_timeout' },
    },
  ])('a backend $does is $status $reason', async ({ answer, status, reason }) => {
    await using tunnel = await tunnelBefore(edge, answer)
    const got = await curl(edge, { transport, host: tunnel.host })
    expect([got.status, got.reason]).toEqual([status, reason])
    expect(got.body).toContain('the target')
    expect(edge.records.at(-1)).toMatchObject({ status, reason, origin: 'edge' })
  })

  test('a request on a reused upstream connection is 502 upstream_reset when its client disconnects', async () => {
    await using backend = await rawBackend((received, socket) => {
      if (!received.includes('/hang')) socket.write(OK)
    })
    const { hostname, host } = edge.serve(freshHostname(), undefined)
    const session = edge.sessions.connect(hostname, backend.port)
    expect((await curl(edge, { transport, host })).status).toBe(200)
    const asked = curl(edge, { transport, host, path: '/hang' })
    await vi.waitUntil(() => backend.received.some((received) => received.includes('/hang')), SOON)
    session.close('closed', 'its client goes')
    const got = await asked
    expect([got.status, got.reason]).toEqual([502, 'upstream_reset'])
    expect(got.body).toContain('the client was disconnected')
  })

  test.each([
    { method: 'GET', status: 200 },
    { method: 'PUT', status: 200 },
    { method: 'POST', status: 502 },
  ])('a $method whose client disconnects is $status when the tunnel has another client', async ({ method, status }) => {
    await using silent = await rawBackend(() => undefined)
    await using backend = await rawBackend((_received, socket) => void socket.write(OK))
    const { hostname, host } = edge.serve(freshHostname(), undefined)
    const staying = edge.sessions.connect(hostname, backend.port)
    // The edge uses the newest session.
    const going = edge.sessions.connect(hostname, silent.port)
    const asked = curl(edge, { transport, host, args: ['-X', method] })
    await vi.waitUntil(() => silent.received.length === 1, SOON)
    going.close('closed', 'its client goes')
    const got = await asked
    expect(got.status).toBe(status)
    if (status === 502) expect(got.body).toContain('the client was disconnected')
    else expect(backend.received).toEqual(silent.received)
    staying.close('closed', 'the test is over')
  })

  test('a GET whose client disconnects waits for the next client', async () => {
    await using own = await startProxy({ contextFor, limits: { holdMs: 60_000 } })
    await using silent = await rawBackend(() => undefined)
    await using backend = await rawBackend((_received, socket) => void socket.write(OK))
    const { hostname, host } = own.serve(freshHostname(), undefined)
    const going = own.sessions.connect(hostname, silent.port)
    const asked = curl(own, { transport, host })
    await vi.waitUntil(() => silent.received.length === 1, SOON)
    going.close('closed', 'its client goes')
    await vi.waitUntil(() => own.sessions.waiting === 1, SOON)
    own.sessions.connect(hostname, backend.port)
    expect((await asked).status).toBe(200)
  })

  test('a request above the limit of a tunnel is 429, and other tunnels are served', async () => {
    const { own, host, other, leave } = await full('requestsPerTunnel')
    const answer = await curl(own, { transport, host })
    expect([answer.status, answer.reason, answer.header('retry-after')]).toEqual([429, 'overloaded', '1'])
    expect((await curl(own, { transport, host: other })).status).toBe(200)
    leave()
    await vi.waitFor(async () => expect((await curl(own, { transport, host })).status).toBe(200), SOON)
  })

  test('a connection above the limit of the edge is 503 for every tunnel, and an unknown host stays 404', async () => {
    const { own, host, other, leave } = await full('connections')
    for (const each of [host, other]) {
      const answer = await curl(own, { transport, host: each })
      expect([answer.status, answer.reason, answer.header('retry-after')]).toEqual([503, 'overloaded', '1'])
    }
    expect((await curl(own, { transport, host: `ffffffffffffffff.${DOMAIN}` })).status).toBe(404)
    leave()
    await vi.waitFor(async () => expect((await curl(own, { transport, host: other })).status).toBe(200), SOON)
  })

  test('a connection above the limit of a source is 503, and other sources are served', async () => {
    const { own, host, leave } = await full('connectionsPerSource')
    const from = (address: string) => curl(own, { transport, host, args: ['--interface', address] })
    const answer = await from('127.0.0.1')
    expect([answer.status, answer.reason, answer.header('retry-after')]).toEqual([503, 'overloaded', '1'])
    expect((await from('127.0.0.2')).status).toBe(200)
    leave()
    await vi.waitFor(async () => expect((await from('127.0.0.1')).status).toBe(200), SOON)
  })
})

test('a trusted balancer may have more connections than a source', async () => {
  const limits = { connectionsPerSource: 1 }
  await using backend = await rawBackend((_received, socket) => socket.write(OK))
  const own = await startProxy({ contextFor, limits, trusted: ['127.0.0.0/8'] })
  onTestFinished(() => own.proxy.close())
  const { host } = own.serve('0000000000000001', backend.port)
  const kept = [1, 2, 3].map(() => rawVisitor(own.httpPort, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`))
  for (const visitor of kept) await visitor.sees('HTTP/1.1 200 OK')
  for (const { socket } of kept) socket.destroy()
})
