import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Transport, TRANSPORTS } from '../../../support/edge/visitor.ts'
import { honest, type Honest } from '../../../support/edge/attack-tools.ts'
import { block, continuation, headers, http2Visitor, openHeaders, reset, widestWindow } from '../../../support/edge/http2.ts'
import { answered, rawBackend } from '../../../support/edge/raw-http.ts'
import { settled } from '../../../support/edge/settled.ts'
import { forwardTo, running, sshUser } from '../../../support/edge/openssh.ts'
import { logIn, type LoggedIn } from '../../../support/edge/ssh2-client.ts'
import { startWholeEdge, type WholeEdge } from '../../../support/edge/whole-edge.ts'
import { freshHostname } from '../../../support/edge/ssh-edge.ts'
import { SOON } from '../../../support/patience.ts'

const MIB = 1024 * 1024

let edge: WholeEdge
let other: Honest
const cleanup = new AsyncDisposableStack()
beforeAll(async () => {
  edge = cleanup.use(await startWholeEdge({ proxy: { headMs: 1_500, slowMs: 2_000, sweepMs: 100 } }))
  other = cleanup.use(await honest(edge))
})
afterAll(async () => {
  expect(edge.logged()).toBe('')
  await cleanup.disposeAsync()
})

const memoryOf = async () => {
  const { heap, buffers } = await edge.usage()
  return heap + buffers
}

/** Opens a visitor's connection that ignores errors, and writes its first bytes. */
function visitor(first: string): Socket {
  const socket = connect({ port: edge.ports.http, host: '127.0.0.1' })
  socket.on('error', () => socket.destroy())
  socket.write(first, 'latin1')
  return socket
}

const hostOf = ({ hostname }: Pick<LoggedIn, 'hostname'>) => `${hostname}.${edge.domain}`

/** Logs in a client that forwards a new tunnel to a port, with back-pressure. */
async function tunnelTo(port: number): Promise<LoggedIn> {
  const own = await logIn(edge)
  await own.serve((channel) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.on('error', () => channel.destroy())
    channel.on('error', () => socket.destroy())
    channel.on('close', () => socket.destroy())
    channel.pipe(socket).pipe(channel)
  })
  return own
}

test('the edge closes a thousand visitors that send a head byte by byte, and serves others meanwhile', async () => {
  const before = await memoryOf()
  const dribbles: NodeJS.Timeout[] = []
  const connected: Promise<unknown>[] = []
  const closed = Array.from({ length: 1_000 }, () => {
    const socket = visitor('GET / HTTP/1.1\r\nX: ')
    connected.push(once(socket, 'connect'))
    dribbles.push(setInterval(() => socket.writable && socket.write('x'), 200))
    return once(socket.resume(), 'close')
  })
  await Promise.all(connected)
  expect((await memoryOf()) - before).toBeLessThan(32 * MIB)
  await other.expectServed()
  await Promise.all(closed)
  for (const dribble of dribbles) clearInterval(dribble)
  await vi.waitFor(async () => expect((await edge.usage()).visitors).toBe(0), SOON)
})

test('the edge closes two hundred visitors whose bodies stop half way, and frees their channels', async () => {
  await using backend = await rawBackend(() => undefined)
  using own = await tunnelTo(backend.port)
  const answers = Array.from({ length: 200 }, () =>
    answered(edge.ports.http, `POST / HTTP/1.1\r\nHost: ${hostOf(own)}\r\nContent-Length: 1000\r\n\r\nhalf`),
  )
  await other.expectServed()
  for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1.1 408 /)
  await vi.waitFor(async () => expect((await edge.usage()).visitors).toBe(0), SOON)
})

test('a hundred downloads of visitors that do not read use less than 64 MB of the edge', async () => {
  // More than the system's buffers hold for all visitors.
  const large = Buffer.alloc(12 * MIB)
  await using backend = await rawBackend((_received, socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${100 * large.length}\r\n\r\n`)
    socket.write(large)
  })
  await using user = await sshUser(edge)
  const hostname = freshHostname()
  await edge.set(hostname, { authorizedKeys: [user.publicKey] })
  const sessions = (await edge.usage()).sessions
  await using ssh = running(['ssh', ...user.options, ...forwardTo(edge, hostname, backend.port)])
  await vi.waitFor(async () => expect((await edge.usage()).sessions, ssh.said()).toBe(sessions + 1), SOON)
  const before = await edge.usage()
  const readers = Array.from({ length: 100 }, () => visitor(`GET / HTTP/1.1\r\nHost: ${hostOf({ hostname })}\r\n\r\n`).pause())
  let most = 0
  // Until the edge has closed all of them as too slow, which takes two seconds.
  do {
    const { heap, buffers } = await edge.usage()
    most = Math.max(most, heap + buffers - before.heap - before.buffers)
  } while (backend.received.length < 100 || (await edge.usage()).visitors > 0)
  expect(most).toBeLessThan(64_000_000)
  await other.expectServed()
  for (const reader of readers) reader.destroy()
})

interface Upload extends Disposable {
  /** Returns the number of body bytes that the socket has accepted. */
  readonly taken: () => number
}

/** Starts an upload that sends as much as flow control allows. */
function upload(transport: Transport, host: string): Upload {
  const head = `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 1000000000\r\n\r\n`
  const about = { host: '127.0.0.1', servername: host, rejectUnauthorized: false }
  const ALPNProtocols = [transport === 'h2' ? 'h2' : 'http/1.1']
  const socket = transport === 'http' ? visitor('') : connectTls({ ...about, port: edge.ports.https, ALPNProtocols })
  socket.on('error', () => socket.destroy())
  const session = transport === 'h2' ? connectHttp2(`https://${host}`, { createConnection: () => socket }) : undefined
  const stream = session?.request({ ':method': 'POST' }).on('error', () => undefined) ?? socket
  if (!session) socket.write(head)
  const part = Buffer.alloc(65_536)
  let taken = 0
  const send = () => {
    while (!stream.destroyed && stream.write(part, () => (taken += part.length))) continue
  }
  stream.on('drain', send)
  send()
  return {
    taken: () => taken,
    [Symbol.dispose]() {
      session?.destroy()
      socket.destroy()
    },
  }
}

/**
 * Measured distribution of an upload of 10 MB that the target does not read, over plain HTTP and OpenSSH on one machine: 3.7 MB
 * in the system's buffer of the visitor, 0.7 MB in that of the edge, 0.1 MB in the edge, 2.1 MB in the client (its window is
 * 2 MiB), and 4.2 MB in the system's buffers between the client and its target.
 */
test.each(TRANSPORTS)(
  'over %s, an upload that the target does not read stops, and uses less than 4 MB of the edge',
  async (transport) => {
    await using backend = await rawBackend((_received, socket) => socket.pause())
    await using user = await sshUser(edge)
    const hostname = freshHostname()
    await edge.set(hostname, { authorizedKeys: [user.publicKey] })
    const sessions = (await edge.usage()).sessions
    await using ssh = running(['ssh', ...user.options, ...forwardTo(edge, hostname, backend.port)])
    await vi.waitFor(async () => expect((await edge.usage()).sessions, ssh.said()).toBe(sessions + 1), SOON)
    const before = await memoryOf()
    using sender = upload(transport, hostOf({ hostname }))
    await settled(sender.taken)
    expect(sender.taken()).toBeGreaterThan(0)
    await other.expectServed()
    // The garbage of data in transit is collected soon.
    await vi.waitFor(async () => expect((await memoryOf()) - before).toBeLessThan(4_000_000), SOON)
  },
)

test('the edge disconnects visitors that reset streams as fast as they open them', async () => {
  const before = await memoryOf()
  await using backend = await rawBackend(() => undefined)
  using own = await tunnelTo(backend.port)
  const fields = block([
    [':method', 'GET'],
    [':scheme', 'https'],
    [':authority', hostOf(own)],
    [':path', '/'],
  ])
  const floods = Array.from({ length: 10 }, async () => {
    using flood = await http2Visitor(edge.ports.https, hostOf(own))
    const frames = Array.from({ length: 5_000 }, (_, index) => [headers(2 * index + 1, fields), reset(2 * index + 1)]).flat()
    flood.socket.write(Buffer.concat(frames))
    await flood.closed
  })
  await Promise.all(floods)
  await other.expectServed()
  expect((await memoryOf()) - before).toBeLessThan(32 * MIB)
})

test('heads without end use bounded memory, in CONTINUATION frames or in one line', async () => {
  const before = await memoryOf()
  using flood = await http2Visitor(edge.ports.https, hostOf(other))
  flood.socket.write(
    openHeaders(
      1,
      block([
        [':method', 'GET'],
        [':scheme', 'https'],
      ]),
    ),
  )
  const more = continuation(1, block([['x', 'y'.repeat(8_000)]]))
  const send = () => {
    while (!flood.socket.destroyed && flood.socket.write(more)) continue
  }
  flood.socket.on('drain', send)
  send()
  await flood.closed
  expect(await answered(edge.ports.http, `GET / HTTP/1.1\r\nHost: ${hostOf(other)}\r\nX: ${'y'.repeat(100_000)}`)).toMatch(
    /^HTTP\/1.1 431 /,
  )
  expect((await memoryOf()) - before).toBeLessThan(16 * MIB)
  await other.expectServed()
})

test('a hundred requests of an HTTP/2 visitor that reads nothing use less than 64 MB', async () => {
  const before = await memoryOf()
  const large = Buffer.alloc(MIB)
  await using backend = await rawBackend((_received, socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${large.length}\r\n\r\n`)
    socket.write(large)
  })
  using own = await tunnelTo(backend.port)
  using flood = await http2Visitor(edge.ports.https, hostOf(own))
  const fields = block([
    [':method', 'GET'],
    [':scheme', 'https'],
    [':authority', hostOf(own)],
    [':path', '/'],
  ])
  flood.socket.write(Buffer.concat([widestWindow, ...Array.from({ length: 100 }, (_, index) => headers(2 * index + 1, fields))]))
  flood.socket.pause()
  await vi.waitFor(() => expect(backend.received).toHaveLength(100), SOON)
  await other.expectServed()
  expect((await memoryOf()) - before).toBeLessThan(64_000_000)
})
