import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ChannelEvents } from '../../edge/channels/channel.ts'
import type { Session } from '../../edge/session.ts'
import { DOMAIN, startProxy } from '../support/edge/proxy-fixture.ts'
import { rawBackend, rawVisitor } from '../support/edge/raw-http.ts'
import { selfSigned } from '../support/edge/self-signed.ts'
import { freshHostname } from '../support/ssh-edge.ts'

const soon = { timeout: 10_000, interval: 10 }
const GATHERED_MS = 30
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

const cleanup = new AsyncDisposableStack()
const context = selfSigned(DOMAIN)
const edge = cleanup.use(await startProxy({ contextFor: async () => context, limits: { sweepMs: 20, holdMs: 10_000 } }))
let hostname = ''
let host = ''
beforeEach(() => {
  hostname = freshHostname()
  host = edge.serve(hostname, undefined).host
})
afterAll(() => cleanup.disposeAsync())

const recordsOf = (name: string) => edge.records.filter(({ tunnel }) => tunnel === `uid-${name}`)

/** A network that delivers what was sent within some time in one piece. */
async function gathering(port: number): Promise<number> {
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    const parts: Buffer[] = []
    near.on('data', (part) => {
      if (parts.length === 0) setTimeout(() => far.write(Buffer.concat(parts.splice(0))), GATHERED_MS)
      parts.push(part)
    })
    far.on('data', (part) => near.write(part))
    for (const [one, other] of [[near, far] as const, [far, near] as const]) {
      one.on('error', () => one.destroy()).on('close', () => other.destroy())
    }
    cleanup.defer(() => void near.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanup.defer(() => void server.close())
  return (server.address() as AddressInfo).port
}

async function secureVisitor(port: number): Promise<Socket> {
  const options = { port, host: '127.0.0.1', servername: host, rejectUnauthorized: false, allowHalfOpen: true }
  const socket = connectTls(options)
  socket.on('error', () => socket.destroy())
  await once(socket, 'secureConnect')
  return socket
}

async function visitorBy(scheme: 'http' | 'https'): Promise<Socket> {
  return scheme === 'https' ? secureVisitor(edge.httpsPort) : rawVisitor(edge.httpPort).socket
}

const post = (fields: string) => `POST / HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n\r\n`

describe('a request that waits for a session', () => {
  test.for([
    ['in a record of its own', (body: string) => [post(`Content-Length: ${body.length}`), body], 10],
    ['of many records', (body: string) => [post(`Content-Length: ${body.length}`) + body], 40_000],
    [
      'in chunks',
      (body: string) => [post('Transfer-Encoding: chunked'), `${body.length.toString(16)}\r\n${body}\r\n`, '0\r\n\r\n'],
      10,
    ],
  ] as const)('has all of its body, %s of TLS that came in one segment with the head', async ([, parts, length]) => {
    const body = 'x'.repeat(length)
    await using backend = await rawBackend((received, socket) => {
      if (received.includes(body)) socket.write(OK)
    })
    const visitor = await secureVisitor(await gathering(edge.httpsPort))
    let answer = ''
    visitor.on('data', (part: Buffer) => (answer += part.toString()))
    for (const part of parts(body)) visitor.write(part)
    await vi.waitUntil(() => edge.sessions.waiting === 1, soon)
    await new Promise((resolve) => setTimeout(resolve, 2 * GATHERED_MS))
    edge.sessions.connect(hostname, backend.port)
    await vi.waitUntil(() => answer.endsWith('ok'), soon)
    visitor.destroy()
  })

  test.for([
    ['http', 'resets'],
    ['http', 'ends its side'],
    ['https', 'resets'],
    ['https', 'ends its side'],
  ] as const)('by %s ends when its visitor %s before its body is whole', async ([scheme, how]) => {
    await using backend = await rawBackend(() => undefined)
    const visitor = await visitorBy(scheme)
    visitor.write(`${post('Content-Length: 10')}ab`)
    await vi.waitUntil(() => edge.sessions.waiting === 1, soon)
    if (how === 'ends its side') visitor.end()
    else if (scheme === 'http') visitor.resetAndDestroy()
    else visitor.destroy()
    await vi.waitUntil(() => recordsOf(hostname).length > 0, soon)
    edge.sessions.connect(hostname, backend.port)
    expect(recordsOf(hostname)).toMatchObject([{ status: 499, reason: 'visitor_gone' }])
    expect(backend.received).toEqual([])
    visitor.destroy()
  })

  test('has all of its body, too, when it waits since its session went', async () => {
    await using backend = await rawBackend((received, socket) => {
      if (received.endsWith('0123456789')) socket.write(OK)
    })
    const opening: ChannelEvents[] = []
    const nothing = () => undefined
    const channel = { write: () => true, end: nothing, destroy: nothing, pause: nothing, resume: nothing }
    const going: Session = {
      ...{ id: 'going', hostname, clientIp: '127.0.0.1', since: 0, channels: 0, close: nothing },
      login: { authMethod: 'token', passwordId: 'none' },
      open: (_origin, events) => (opening.push(events), channel),
    }
    edge.sessions.add(going)
    const visitor = rawVisitor(edge.httpPort, post('Content-Length: 10'))
    await vi.waitUntil(() => opening.length === 1, soon)
    edge.sessions.remove(going)
    opening[0]?.refused('session_lost')
    visitor.socket.write('0123456789')
    await new Promise((resolve) => setTimeout(resolve, GATHERED_MS))
    edge.sessions.connect(hostname, backend.port)
    await visitor.sees('\r\n\r\nok')
    visitor.socket.destroy()
  })
})

test.for(['http', 'https'] as const)(
  'requests by %s that wait while their visitor does not read are answered, although it has ended its side',
  async (scheme) => {
    const COUNT = 220
    const body = 'y'.repeat(30_000)
    let asked = 0
    await using backend = await rawBackend((received, socket) => {
      const all = received.split('\r\n\r\n').length - 1
      for (; asked < all; asked++) socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    })
    edge.sessions.connect(hostname, backend.port)
    const visitor = await visitorBy(scheme)
    visitor.pause()
    visitor.removeAllListeners('data')
    visitor.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(COUNT))
    // As many as the systems on the way keep.
    let before = -1
    await vi.waitUntil(() => before === (before = recordsOf(hostname).length) && before > 0, { timeout: 10_000, interval: 300 })
    expect(before).toBeLessThan(COUNT)
    visitor.end()
    visitor.on('data', () => undefined).resume()
    await vi.waitUntil(() => recordsOf(hostname).length === COUNT, soon)
    expect(recordsOf(hostname).every(({ status }) => status === 200)).toBe(true)
    visitor.destroy()
  },
)

test.for(['', 'early'])('an upgrade hears that its visitor ended its side before the answer came, after %j', async (early) => {
  let ended = false
  await using backend = await rawBackend((received, socket) => {
    if (!received.endsWith(`\r\n\r\n`)) return
    socket.on('end', () => {
      ended = true
      socket.end('bye')
    })
    setTimeout(() => socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n'), 100)
  })
  edge.sessions.connect(hostname, backend.port)
  const visitor = rawVisitor(
    edge.httpPort,
    `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n${early}`,
  )
  visitor.socket.end()
  expect(await visitor.over).toMatch(/bye$/)
  expect(ended).toBe(true)
  expect(backend.received[0]?.endsWith(`\r\n\r\n${early}`)).toBe(true)
})
