import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import { afterAll, describe, expect, test, vi } from 'vitest'
import type { ChannelEvents } from '../../../edge/channels/channel.ts'
import type { Session } from '../../../edge/sessions.ts'
import { DOMAIN, startProxy, selfSigned } from '../../support/edge/proxy-fixture.ts'
import { rawBackend, rawVisitor } from '../../support/edge/raw-http.ts'
import { settled } from '../../support/edge/settled.ts'
import { freshHostname } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

const cleanup = new AsyncDisposableStack()
const context = selfSigned(DOMAIN)
const edge = cleanup.use(await startProxy({ contextFor: async () => context, limits: { sweepMs: 20, holdMs: 10_000 } }))
afterAll(async () => {
  await cleanup.disposeAsync()
  expect(edge.failures).toEqual([])
})

/** Creates a tunnel without a client. */
const tunnel = () => edge.serve(freshHostname(), undefined)
const recordsOf = (hostname: string) => edge.records.filter((record) => record.tunnel === `uid-${hostname}`)

/** Connections that this process has accepted, by remote port. They include the edge’s. */
const accepted = new Map<number | undefined, Socket>()
subscribe('net.server.socket', (message) => {
  const { socket } = message as { readonly socket: Socket }
  accepted.set(socket.remotePort, socket)
})

/** Resolves when the edge has read all bytes written to a socket, with the edge's end of that connection. */
const readByEdge = (sender: Socket): Promise<Socket> =>
  vi.waitUntil(() => {
    const socket = accepted.get(sender.localPort)
    return socket?.bytesRead === sender.bytesWritten && socket
  }, SOON)

/** Relay that can deliver several writes in one segment. */
interface GatheringNetwork {
  /** Visitor’s end of the connection. */
  readonly socket: Socket
  /** Holds the sent bytes until `send` resolves, and delivers them at once. Resolves when the edge has read them. */
  inOneSegment(send: () => Promise<void>): Promise<void>
}

async function gatheringNetwork(port: number): Promise<GatheringNetwork> {
  const server = createServer()
  cleanup.defer(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [near] = (await once(server, 'connection')) as [Socket]
  const far = connect(port, '127.0.0.1')
  for (const each of [socket, near, far]) {
    each.on('error', () => each.destroy())
    cleanup.defer(() => void each.destroy())
  }
  let kept: Buffer[] | undefined
  near.on('data', (part: Buffer) => (kept ? kept.push(part) : far.write(part)))
  far.on('data', (part: Buffer) => near.write(part))
  const isAllHere = () => near.bytesRead === socket.bytesWritten
  return {
    socket,
    async inOneSegment(send) {
      await vi.waitUntil(isAllHere, SOON)
      kept = []
      await send()
      await vi.waitUntil(isAllHere, SOON)
      far.write(Buffer.concat(kept))
      kept = undefined
      await readByEdge(far)
    },
  }
}

async function secured(socket: Socket, host: string): Promise<Socket> {
  const visitor = connectTls({ socket, servername: host, rejectUnauthorized: false })
  visitor.on('error', () => visitor.destroy())
  await once(visitor, 'secureConnect')
  return visitor
}

/** Connects a visitor. `tcp` is the connection below TLS, which can end without a TLS alert. */
async function visitorBy(scheme: 'http' | 'https', host: string): Promise<{ readonly visitor: Socket; readonly tcp: Socket }> {
  const port = scheme === 'http' ? edge.httpPort : edge.httpsPort
  const tcp = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  tcp.on('error', () => tcp.destroy())
  return { tcp, visitor: scheme === 'http' ? tcp : await secured(tcp, host) }
}

const post = (host: string, fields: string) => `POST / HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n\r\n`

describe('a request that waits for a session', () => {
  test.for([
    ['in its own record', (host: string, body: string) => [post(host, `Content-Length: ${body.length}`), body], 10],
    ['in many records', (host: string, body: string) => [post(host, `Content-Length: ${body.length}`) + body], 40_000],
    [
      'in chunks',
      (host: string, body: string) => [
        ...[post(host, 'Transfer-Encoding: chunked'), `${body.length.toString(16)}\r\n${body}\r\n`],
        '0\r\n\r\n',
      ],
      10,
    ],
  ] as const)('keeps its body, sent %s of TLS in one segment with the head', async ([, parts, length]) => {
    const body = 'x'.repeat(length)
    await using backend = await rawBackend((received, socket) => {
      if (received.includes(body)) socket.write(OK)
    })
    const { hostname, host } = tunnel()
    const network = await gatheringNetwork(edge.httpsPort)
    const visitor = await secured(network.socket, host)
    let answer = ''
    visitor.on('data', (part: Buffer) => (answer += part.toString()))
    await network.inOneSegment(async () => {
      for (const part of parts(host, body)) await new Promise<unknown>((resolve) => visitor.write(part, resolve))
    })
    await vi.waitUntil(() => edge.sessions.waiting === 1, SOON)
    edge.sessions.connect(hostname, backend.port)
    await vi.waitUntil(() => answer.endsWith('ok'), SOON)
    visitor.destroy()
  })

  test.for([
    ['http', 'resets'],
    ['http', 'ends its side'],
    ['https', 'resets'],
    ['https', 'ends its side'],
  ] as const)('over %s ends when its visitor %s before the body is complete', async ([scheme, how]) => {
    await using backend = await rawBackend(() => undefined)
    const { hostname, host } = tunnel()
    const { visitor, tcp } = await visitorBy(scheme, host)
    visitor.write(`${post(host, 'Content-Length: 10')}ab`)
    await vi.waitUntil(() => edge.sessions.waiting === 1, SOON)
    if (how === 'resets') tcp.resetAndDestroy()
    else visitor.end()
    await vi.waitUntil(() => recordsOf(hostname).length > 0, SOON)
    edge.sessions.connect(hostname, backend.port)
    expect(recordsOf(hostname)).toMatchObject([{ status: 499, reason: 'visitor_gone' }])
    expect(backend.received).toEqual([])
    visitor.destroy()
  })

  test('keeps its body when it waits because its session has ended', async () => {
    await using backend = await rawBackend((received, socket) => {
      if (received.endsWith('0123456789')) socket.write(OK)
    })
    const { hostname, host } = tunnel()
    const opening: ChannelEvents[] = []
    const nothing = () => undefined
    const channel = { write: () => true, end: nothing, destroy: nothing, pause: nothing, resume: nothing }
    const going: Session = {
      ...{ id: 'going', hostname, clientIp: '127.0.0.1', since: 0, channels: 0, notify: nothing, close: nothing },
      login: { authMethod: 'token', passwordId: 'none' },
      open: (_origin, events) => (opening.push(events), channel),
    }
    edge.sessions.add(going)
    const visitor = rawVisitor(edge.httpPort, post(host, 'Content-Length: 10'))
    await vi.waitUntil(() => opening.length === 1, SOON)
    edge.sessions.remove(going)
    opening[0]?.refused('session_lost')
    visitor.socket.write('0123456789')
    await readByEdge(visitor.socket)
    edge.sessions.connect(hostname, backend.port)
    await visitor.sees('\r\n\r\nok')
    visitor.socket.destroy()
  })
})

test.for(['http', 'https'] as const)(
  'pipelined requests over %s are answered to a visitor that reads late and has ended its side',
  async (scheme) => {
    const COUNT = 220
    const body = 'y'.repeat(30_000)
    let asked = 0
    await using backend = await rawBackend((received, socket) => {
      const all = received.split('\r\n\r\n').length - 1
      for (; asked < all; asked++) socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    })
    const { hostname, host } = tunnel()
    edge.sessions.connect(hostname, backend.port)
    const { visitor } = await visitorBy(scheme, host)
    visitor.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(COUNT))
    // Waits until the buffers between backend and visitor are full.
    await vi.waitUntil(() => recordsOf(hostname).length > 0, SOON)
    const answered = await settled(() => recordsOf(hostname).length)
    expect(answered).toBeLessThan(COUNT)
    visitor.end()
    const got = await text(visitor)
    expect(got.split(body)).toHaveLength(COUNT + 1)
    const whole = recordsOf(hostname).filter(({ status, reason }) => status === 200 && reason === null)
    expect(whole).toHaveLength(COUNT)
  },
)

test.for(['', 'early'])(
  'the backend of an upgrade sees the end of a visitor that ended its side before the response, after %j',
  async (early) => {
    const asked = Promise.withResolvers<Socket>()
    let ended = false
    await using backend = await rawBackend((received, socket) => {
      if (!received.endsWith(`\r\n\r\n`)) return
      socket.on('end', () => {
        ended = true
        socket.end('bye')
      })
      asked.resolve(socket)
    })
    const { hostname, host } = tunnel()
    edge.sessions.connect(hostname, backend.port)
    const visitor = rawVisitor(
      edge.httpPort,
      `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n${early}`,
    )
    // The socket pushes null at the end. A paused stream emits no event for it.
    const push = vi.spyOn(await readByEdge(visitor.socket), 'push')
    visitor.socket.end()
    await vi.waitUntil(() => push.mock.calls.some(([chunk]) => chunk === null), SOON)
    const target = await asked.promise
    target.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n')
    expect(await visitor.over).toMatch(/bye$/)
    expect(ended).toBe(true)
    expect(backend.received[0]?.endsWith(`\r\n\r\n${early}`)).toBe(true)
  },
)
