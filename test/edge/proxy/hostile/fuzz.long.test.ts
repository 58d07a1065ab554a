import { closeOf } from '../../../support/edge/raw-http.ts'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { honest, type Honest, createMutator, type Mutator } from '../../../support/edge/attack-tools.ts'
import { block, continuation, data, headers, openHeaders, PREFACE, reset } from '../../../support/edge/http2.ts'
import { randomSeed } from '../../../support/edge/random-seed.ts'
import { logIn, sendMessage, socketOf } from '../../../support/edge/ssh2-client.ts'
import { startWholeEdge, type WholeEdge } from '../../../support/edge/whole-edge.ts'
import { patient, SOON } from '../../../support/patience.ts'

/** Connections of each test. The tests run at the same time. */
const GAMES = { ssh: 400, loggedIn: 200, http: 600, https: 400 }
/** Milliseconds after which a client without a login disconnects, if the edge has not. */
const GIVE_UP_MS = 1_000
const AT_ONCE = 8
const MIB = 1024 * 1024
const TEST = { retry: 0, timeout: patient(60_000) }

const cleanup = new AsyncDisposableStack()
let edge: WholeEdge
let other: Honest
beforeAll(async () => {
  const many = { failedPerSource: 1e9, failedPerSourceAndTunnel: 1e9, handshakesPerSource: 1e6, unfinishedPerSource: 1e9 }
  edge = cleanup.use(
    await startWholeEdge({
      ssh: many,
      proxy: { headMs: 500, keepAliveMs: 500, slowMs: 500, lingerIdleMs: 100, sweepMs: 50 },
    }),
  )
  other = cleanup.use(await honest(edge))
})
afterAll(() => cleanup.disposeAsync())

/** How a connection ends: reset after the write, closed after the write, or closed by the edge or after {@link GIVE_UP_MS}. */
type Ending = (typeof ends)[number]

/** Writes the bytes, and reads until the connection has ended. */
async function play(socket: Socket, bytes: Buffer, ending: Ending): Promise<void> {
  socket.on('error', () => socket.destroy())
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.resume()
  if (ending === 'by the edge') socket.write(bytes)
  else socket.end(bytes, () => ending === 'at once' && socket.destroy())
  const giveUp = setTimeout(() => socket.destroy(), GIVE_UP_MS)
  await closed
  clearTimeout(giveUp)
}

const ends = ['at once', 'after the data', 'by the edge'] as const

/** Runs `games` connections in {@link AT_ONCE} series. */
async function players(seed: number, games: number, play: (mutator: Mutator) => Promise<void>): Promise<void> {
  const players = Array.from({ length: AT_ONCE }, async (_, index) => {
    const mutator = createMutator(seed + index)
    for (let game = index; game < games; game += AT_ONCE) await play(mutator)
  })
  await Promise.all(players)
}

const text = (value: string): Buffer => Buffer.concat([Buffer.of(0, 0, 0, value.length), Buffer.from(value, 'latin1')])
const number = (value: number): Buffer => Buffer.of(value >>> 24, value >>> 16, value >>> 8, value)

/** Messages of all types after the login (RFC 4250, section 4.1), some of them incomplete. */
const messages = (hostname: string): readonly [Buffer, ...Buffer[]] => [
  Buffer.concat([Buffer.of(80), text('tcpip-forward'), Buffer.of(1), text(hostname), number(80)]),
  Buffer.concat([Buffer.of(80), text('cancel-tcpip-forward'), Buffer.of(1), text(hostname), number(80)]),
  Buffer.concat([Buffer.of(80), text('keepalive@openssh.com'), Buffer.of(1)]),
  Buffer.concat([Buffer.of(90), text('session'), number(0), number(2 ** 21), number(32_768)]),
  Buffer.concat([
    Buffer.of(90),
    text('direct-tcpip'),
    number(1),
    number(2 ** 21),
    number(32_768),
    text('a'),
    number(1),
    text('b'),
    number(2),
  ]),
  Buffer.concat([Buffer.of(91), number(0), number(7), number(2 ** 21), number(32_768)]),
  Buffer.concat([Buffer.of(92), number(0), number(2), text('no'), text('')]),
  Buffer.concat([Buffer.of(93), number(0), number(65_536)]),
  Buffer.concat([Buffer.of(94), number(0), text('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')]),
  Buffer.concat([Buffer.of(95), number(0), number(1), text('to stderr')]),
  Buffer.concat([Buffer.of(96), number(0)]),
  Buffer.concat([Buffer.of(97), number(0)]),
  Buffer.concat([
    Buffer.of(98),
    number(0),
    text('pty-req'),
    Buffer.of(1),
    text('xterm'),
    number(80),
    number(24),
    number(0),
    number(0),
    text(''),
  ]),
  Buffer.concat([Buffer.of(98), number(0), text('shell'), Buffer.of(1)]),
  Buffer.concat([Buffer.of(98), number(0), text('exec'), Buffer.of(1), text('id')]),
  Buffer.concat([Buffer.of(98), number(0), text('signal'), Buffer.of(0), text('TERM')]),
  ...[1, 2, 3, 4, 5, 6, 7, 20, 21, 30, 31, 50, 51, 52, 60, 61, 81, 82, 99, 100, 192, 255].map((type) =>
    Buffer.of(type, 0, 0, 0, 4, 1, 2, 3, 4),
  ),
]

const KEXINIT = Buffer.concat([
  Buffer.from('SSH-2.0-fuzz\r\n'),
  (() => {
    const lists = [
      'curve25519-sha256,mlkem768x25519-sha256',
      'ssh-ed25519',
      ...Array<string>(2).fill('aes128-gcm@openssh.com'),
      ...Array<string>(2).fill('hmac-sha2-256'),
    ]
    const payload = Buffer.concat([
      Buffer.of(20),
      Buffer.alloc(16),
      ...[...lists, 'none', 'none', '', ''].map(text),
      Buffer.alloc(5),
    ])
    const padding = 16 - ((payload.length + 5) % 8)
    return Buffer.concat([number(payload.length + padding + 1), Buffer.of(padding), payload, Buffer.alloc(padding)])
  })(),
])
/** SSH_MSG_KEX_ECDH_INIT, as a packet without encryption. */
const ECDH_INIT = Buffer.concat([number(44), Buffer.of(6, 30), text('x'.repeat(32)), Buffer.alloc(6)])

function seeds(host: string): readonly [Buffer, ...Buffer[]] {
  const http = [
    `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    `POST /a?b HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n5;a="b"\r\nhello\r\n0\r\nX: y\r\n\r\n`,
    `PUT / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello`,
    `GET http://${host}/ HTTP/1.0\r\nHost: ${host}\r\nConnection: keep-alive, x\r\nX: y\r\n\r\nGET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n`,
    `OPTIONS * HTTP/1.1\r\nHost: ${host}:80\r\nOrigin: x\r\nAccess-Control-Request-Method: PUT\r\n\r\n`,
  ].map((request) => Buffer.from(request, 'latin1'))
  return [Buffer.from(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`), ...http]
}

function frames(host: string): readonly [Buffer, ...Buffer[]] {
  const fields = block([
    [':method', 'POST'],
    [':scheme', 'https'],
    [':authority', host],
    [':path', '/'],
    ['cookie', 'a=b'],
  ])
  return [
    Buffer.concat([PREFACE, headers(1, fields), headers(3, fields, 'goes on'), data(3, 'hello'), reset(1)]),
    Buffer.concat([PREFACE, openHeaders(1, fields), continuation(1, block([['x', 'y']])), headers(5, fields)]),
  ]
}

describe.concurrent('the edge serves on with bounded memory under random input to', () => {
  let before: Awaited<ReturnType<WholeEdge['usage']>>
  beforeAll(async () => {
    await other.expectServed()
    before = await edge.usage()
  })
  const seed = randomSeed('fuzzed connections')

  /** Waits until the edge has closed the connections, and expects their memory to be free. */
  const over = async () => {
    await other.expectServed()
    await vi.waitFor(async () => expect((await edge.usage()).visitors).toBeLessThan(3 * AT_ONCE), SOON)
    await vi.waitFor(async () => {
      const { heap, buffers } = await edge.usage()
      expect(heap + buffers - before.heap - before.buffers, `seed ${seed}`).toBeLessThan(48 * MIB)
    }, SOON)
    expect(edge.logged(), `seed ${seed}`).toBe('')
  }

  test('the SSH port', TEST, async () => {
    const handshake = Buffer.concat([KEXINIT, ECDH_INIT])
    await players(seed, GAMES.ssh, async ({ mutate, below, bytes, pick }) => {
      const socket = connect({ host: '127.0.0.1', port: edge.ports.ssh })
      await play(socket, below(8) === 0 ? bytes(below(2_000)) : mutate(handshake), pick(ends))
    })
    await over()
  })

  test('the SSH port after a login', TEST, async () => {
    await players(seed, GAMES.loggedIn, async ({ mutate, below, pick }) => {
      using own = await logIn(edge)
      own.client.on('tcp connection', () => undefined)
      const vocabulary = messages(own.hostname)
      for (let count = 1 + below(40); count > 0 && !socketOf(own.client).destroyed; count--) {
        const message = pick(vocabulary)
        sendMessage(own.client, below(3) === 0 ? message : mutate(message))
      }
      const visit = connect(edge.ports.http, '127.0.0.1')
      visit.on('error', () => visit.destroy())
      visit.resume().end(`GET / HTTP/1.1\r\nHost: ${own.hostname}.${edge.domain}\r\nConnection: close\r\n\r\n`)
      await Promise.race([own.gone, closeOf(visit)])
    })
    await over()
  })

  test('the HTTP port', TEST, async () => {
    const known = seeds(`${other.hostname}.${edge.domain}`)
    await players(seed, GAMES.http, async ({ mutate, below, bytes, pick }) => {
      const socket = connect({ host: '127.0.0.1', port: edge.ports.http })
      await play(socket, below(20) === 0 ? bytes(below(2_000)) : mutate(pick(known)), pick(ends))
    })
    await over()
  })

  test('the HTTPS port, before and within TLS', TEST, async () => {
    const servername = `${other.hostname}.${edge.domain}`
    const [known, spoken] = [seeds(servername), frames(servername)]
    await players(seed, GAMES.https, async ({ mutate, below, bytes, pick }) => {
      const port = edge.ports.https
      if (below(4) === 0)
        return play(
          connect({ host: '127.0.0.1', port }),
          Buffer.concat([Buffer.of(22, 3, 1, 0, 200, 1), bytes(below(300))]),
          pick(ends),
        )
      const protocol = pick(['h2', 'h2', 'http/1.1'] as const)
      const socket = connectTls({ host: '127.0.0.1', port, servername, rejectUnauthorized: false, ALPNProtocols: [protocol] })
      await play(socket, mutate(pick(protocol === 'h2' ? spoken : known)), pick(ends))
    })
    await over()
  })
})
