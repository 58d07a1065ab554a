import { http2Session } from '../../support/edge/http2.ts'
import { createHash } from 'node:crypto'
import dns, { type LookupAddress } from 'node:dns'
import type { Socket } from 'node:net'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { DOMAIN, startProxy, selfSigned, tunnelBefore } from '../../support/edge/proxy-fixture.ts'
import { answered, rawBackend, rawVisitor } from '../../support/edge/raw-http.ts'
import { freshHostname } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

const edge = await startProxy({ limits: { upstreamMs: 1_000, sweepMs: 20, halfClosedMs: 100 } })

afterAll(async () => {
  vi.restoreAllMocks()
  await edge.proxy.close()
  expect(edge.failures).toEqual([])
})

type LookupDone = (error: null, addresses: LookupAddress[]) => void

const get = (host: string, more = '') => `GET / HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`
const before = (answer: (received: string, socket: Socket) => void, config = {}) => tunnelBefore(edge, answer, config)
const recordOf = ({ hostname }: { readonly hostname: string }) =>
  edge.records.findLast(({ tunnel }) => tunnel === `uid-${hostname}`)

const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** WebSocket server that echoes the first message (RFC 6455): one short, masked frame of text. */
function echoWebSocket(received: string, socket: Socket): void {
  const end = received.indexOf('\r\n\r\n') + 4
  if (end === received.length) {
    const key = /^sec-websocket-key: (.*)\r$/im.exec(received)?.[1] ?? ''
    const accept = createHash('sha1')
      .update(key + ACCEPT_SUFFIX)
      .digest('base64')
    const fields = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}`
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n\r\n`)
  }
  const [kind, size = 0, ...bytes] = Buffer.from(received.slice(end), 'latin1')
  const length = size & 0x7f
  if (kind !== 0x81 || bytes.length < 4 + length) return
  const text = bytes.slice(4, 4 + length).map((byte, index) => byte ^ (bytes[index % 4] ?? 0))
  // The message, and a close frame.
  socket.end(Buffer.from([0x81, length, ...text, 0x88, 0]))
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const CLOSE = 'Connection: close\r\n'

describe('a response', () => {
  test.each([
    {
      does: 'that ends with its connection is forwarded',
      sent: 'HTTP/1.1 200 OK\r\n\r\nhello',
      ends: true,
      seen: /200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nDate: [^\r]+ GMT\r\n\r\n5\r\nhello\r\n0\r\n\r\n$/,
    },
    {
      does: 'of HTTP/1.0 is forwarded as HTTP/1.1',
      sent: 'HTTP/1.0 200 OK\r\n\r\nhello',
      ends: true,
      seen: /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n5\r\nhello\r\n0\r\n\r\n$/,
    },
    {
      does: 'in chunks keeps its trailers',
      sent: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-T: 1\r\n\r\n',
      seen: /chunked\r\n[^]*hello\r\n0\r\nX-T: 1\r\n\r\n$/,
    },
    { does: 'without a body is forwarded', sent: 'HTTP/1.1 204 No Content\r\n\r\n', seen: /204 No Content/ },
    {
      does: 'after 103 and 100 is forwarded with them',
      sent: `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n${OK}`,
      seen: /103 Early[^]*Link[^]*100 Cont[^]*200 OK[^]*ok$/,
    },
    {
      does: 'loses its hop-by-hop fields',
      sent: `HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n${OK.slice(17)}`,
      seen: /^(?![^]*Hop)[^]*ok$/,
    },
    {
      does: 'that is cut off is forwarded up to there',
      sent: 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel',
      ends: true,
      seen: /hel$/,
    },
    { does: 'with a bare LF is 502', sent: 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok', seen: /502 [^]*upstream_invalid/ },
    {
      does: 'with two framings is 502',
      sent: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      seen: /502 [^]*upstream_invalid/,
    },
    {
      does: 'that switches protocols unasked is 502',
      sent: 'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
      seen: /502 [^]*upstream_invalid/,
    },
    { does: 'that never begins is 504', sent: '', seen: /504 [^]*upstream_timeout/ },
    { does: 'that ends before it begins is 502', sent: '', ends: true, seen: /502 [^]*upstream_reset/ },
    {
      does: 'loses a Mooring-Error field of the backend',
      sent: `HTTP/1.1 200 OK\r\nMooring-Error: x\r\n${OK.slice(17)}`,
      seen: /^(?![^]*Mooring)[^]*ok$/,
    },
  ])('$does', async ({ sent, ends, seen }) => {
    await using tunnel = await before((_received, socket) => {
      socket.write(sent)
      if (ends) socket.end()
    })
    expect(await answered(edge.httpPort, get(tunnel.host, CLOSE))).toMatch(seen)
  })

  test('with an invalid first chunk is cut after its head for an HTTP/1.0 visitor', async () => {
    const sent = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'
    await using tunnel = await before((_received, socket) => socket.write(sent))
    const seen = await answered(edge.httpPort, `GET / HTTP/1.0\r\nHost: ${tunnel.host}\r\n\r\n`)
    expect(seen).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n$/)
    expect(edge.records.at(-1)).toMatchObject({ status: 200, reason: 'upstream_reset' })
  })

  test('gets the tunnel’s header modifications, and so does its request', async () => {
    const liveHeaderModifications = [
      { name: 'X-Set', value: 'mine', type: 'response' as const },
      { name: 'Server', value: '', type: 'response' as const },
      { name: 'x-in', value: 'set', type: 'request' as const },
      { name: 'user-agent', value: '', type: 'request' as const },
    ]
    const sent = `HTTP/1.1 200 OK\r\nServer: x\r\nx-set: a\r\nX-SET: b\r\n${OK.slice(17)}`
    await using tunnel = await before((_received, socket) => socket.write(sent), { liveHeaderModifications })
    const seen = await answered(edge.httpPort, get(tunnel.host, `User-Agent: me\r\nX-In: theirs\r\n${CLOSE}`))
    expect(seen).toMatch(/^HTTP\/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\nX-Set: mine\r\nDate: [^\r]+\r\n\r\nok$/)
    expect(tunnel.received[0]).toMatch(/\r\nx-in: set\r\n\r\n$/)
    expect(tunnel.received[0]).not.toMatch(/theirs|User-Agent/)
  })

  test('of server-sent events is forwarded event by event', async () => {
    await using tunnel = await before((received, socket) => {
      if (received.endsWith('\r\n\r\n')) socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n')
    })
    const visitor = rawVisitor(edge.httpPort, get(tunnel.host))
    await visitor.sees('data: 1\n\n')
    visitor.socket.destroy()
    await vi.waitFor(() => expect(recordOf(tunnel)).toMatchObject({ status: 200, reason: 'visitor_gone' }), SOON)
  })

  test('before the end of the request is forwarded, and closes the connection', async () => {
    await using tunnel = await before((_received, socket) => socket.write('HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n'))
    const seen = await answered(edge.httpPort, `POST / HTTP/1.1\r\nHost: ${tunnel.host}\r\nContent-Length: 9\r\n\r\nabc`)
    expect(seen).toMatch(/^HTTP\/1.1 413 No\r\nContent-Length: 0\r\nConnection: close\r\nDate: [^\r]+\r\n\r\n$/)
  })

  test('reaches a visitor that has ended its side', async () => {
    await using tunnel = await before((_received, socket) => socket.write(OK))
    const visitor = rawVisitor(edge.httpPort)
    visitor.socket.end(get(tunnel.host))
    expect(await visitor.over).toMatch(/ok$/)
  })
})

test('a request waits until its client reconnects', async () => {
  await using raw = await rawBackend((_received, socket) => socket.write(OK))
  await using patient = await startProxy({ limits: { holdMs: 5_000 } })
  const { hostname, host } = patient.serve(freshHostname(), undefined)
  const visitor = rawVisitor(patient.httpPort, get(host, CLOSE))
  await vi.waitUntil(() => patient.sessions.waiting === 1, SOON)
  patient.sessions.connect(hostname, raw.port)
  expect(await visitor.over).toMatch(/ok$/)
})

test('pipelined requests are answered in order', async () => {
  await using tunnel = await before((received, socket) => {
    if (received.endsWith('\r\n\r\n'))
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${received.split('GET /').length - 1}`)
  })
  const seen = await answered(edge.httpPort, get(tunnel.host) + get(tunnel.host) + get(tunnel.host, CLOSE))
  expect(seen.match(/\r\n\r\n\d/g)).toEqual(['\r\n\r\n1', '\r\n\r\n2', '\r\n\r\n3'])
})

test('a visitor that disconnects with pipelined requests ends the pending one', async () => {
  await using patient = await startProxy()
  await using raw = await rawBackend(() => undefined)
  const { host } = patient.serve(freshHostname(), raw.port)
  const visitor = rawVisitor(patient.httpPort, get(host) + get(host))
  await vi.waitUntil(() => raw.received.length > 0, SOON)
  visitor.socket.resetAndDestroy()
  await vi.waitUntil(() => patient.records.length > 0, SOON)
  expect(patient.records).toMatchObject([{ status: 499, reason: 'visitor_gone' }])
})

test('an HTTP/2 visitor with the default window that reads late gets all of a download', async () => {
  const context = selfSigned(DOMAIN)
  // The edge first checks the stream when its window is full.
  await using own = await startProxy({ limits: { sweepMs: 200 }, contextFor: async () => context })
  const body = Buffer.alloc(5_000_000)
  let send: () => unknown = () => undefined
  await using backend = await rawBackend((_received, socket) => {
    send = () => socket.write(body)
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`)
  })
  const { host } = own.serve(freshHostname(), backend.port)
  const client = http2Session(own.httpsPort, host)
  await new Promise<void>((resolve) => client.once('remoteSettings', () => resolve()))
  const stream = client.request({ ':authority': host, ':path': '/' })
  const closed = new Promise<void>((resolve) => stream.once('close', () => resolve()))
  let bytes = 0
  stream.once('response', () => {
    send()
    setTimeout(() => stream.on('data', (chunk: Buffer) => (bytes += chunk.length)), 500)
  })
  await closed
  expect([stream.rstCode, bytes]).toEqual([0, body.length])
  client.close()
})

describe('an upgrade', () => {
  const ask = 'Connection: Upgrade\r\nUpgrade: echo\r\n'

  test('forwards raw bytes in both directions, which end separately', async () => {
    await using tunnel = await before((received, socket) => {
      if (received.endsWith('\r\n\r\n'))
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhi')
      if (received.endsWith('bye')) socket.end('ciao')
    })
    const visitor = rawVisitor(edge.httpPort, get(tunnel.host, ask))
    await visitor.sees('hi')
    visitor.socket.end('bye')
    expect(await visitor.over).toMatch(
      /^HTTP\/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nhiciao$/,
    )
    await vi.waitFor(
      () => expect(recordOf(tunnel)).toMatchObject({ status: 101, bytesIn: 3, bytesOut: 6, origin: 'backend' }),
      SOON,
    )
  })

  test('carries a WebSocket', async () => {
    await using tunnel = await before(echoWebSocket)
    vi.spyOn(dns, 'lookup').mockImplementation(((_name: string, _options: object, done: LookupDone) =>
      done(null, [{ address: '127.0.0.1', family: 4 }])) as typeof dns.lookup)
    const client = new WebSocket(`ws://${tunnel.host}:${edge.httpPort}/chat`)
    const heard = new Promise<unknown>((resolve) => client.addEventListener('message', ({ data }) => resolve(data)))
    client.addEventListener('open', () => client.send('hello'))
    expect(await heard).toBe('hello')
    client.close()
    await vi.waitFor(() => expect(recordOf(tunnel)).toMatchObject({ status: 101, path: '/chat' }), SOON)
  })

  test('to h2c is removed from the request, which would hide later requests from the edge', async () => {
    await using tunnel = await before((_received, socket) => socket.write(OK))
    await answered(
      edge.httpPort,
      get(tunnel.host, 'Connection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'),
    )
    expect(tunnel.received[0]).not.toMatch(/upgrade|h2c|http2-settings/i)
  })
})
