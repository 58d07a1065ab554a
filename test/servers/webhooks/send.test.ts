import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createResolver } from '../../../operator/webhooks/resolve.ts'
import { createSend, type SendDeps, type Sent } from '../../../operator/webhooks/send.ts'
import { createAddressGuard } from '../../../shared/outside-addresses.ts'
import { startDnsServer, type Zone } from '../../support/webhooks/dns-server.ts'
import { startReceiver } from '../../support/webhooks/receiver.ts'

/** Requests to receivers that do not behave. */

const never = new AbortController().signal
/** Limit in milliseconds for receivers that never answer. All others get more time than a busy machine takes. */
const SHORT_MS = 400
const REFUSED = 'the host must not have a private, local or reserved address, or one of Mooring itself'
const inside = createAddressGuard({ privateAddresses: true })
const outside = createAddressGuard({ privateAddresses: false })
const client = (deps: Partial<SendDeps> = {}) =>
  createSend({ guard: inside, resolve: createResolver(), timeoutMs: 60_000, ...deps })
const post = (url: string, deps?: Partial<SendDeps>): Promise<Sent> =>
  client(deps)({ url, headers: { 'x-a': 'b' }, body: '{}' }, never)

/** Server that handles raw connections, and counts them. */
async function startRaw(handle: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    sockets.add(socket)
    socket.resume()
    socket.on('error', () => socket.destroy())
    handle(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    open: () => [...sockets].filter(({ destroyed }) => !destroyed).length,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const OK = 'HTTP/1.1 200 OK\r\n'
/** Writes without end. */
const flood = (socket: Socket, chunk: string) => {
  const write = () => {
    while (!socket.destroyed && socket.write(chunk)) continue
  }
  socket.on('drain', write)
  write()
}

test('a message is posted with its headers and body; the response is returned', async () => {
  await using receiver = await startReceiver((response) => response.writeHead(202).end('a\0b'))
  expect(await post(`http://localhost:${receiver.port}/a?b=c`)).toMatchObject({ status: 202, body: 'a\u{fffd}b', error: null })
  expect(receiver.received).toMatchObject([
    { headers: { 'x-a': 'b', 'content-length': '2', host: `localhost:${receiver.port}` }, body: '{}' },
  ])
})

describe('a response', () => {
  test.each<{ does: string; handle: (socket: Socket) => void; gives: Partial<Sent>; timeoutMs?: number }>([
    {
      does: 'of 100 MB is cut after 1 KiB',
      handle: (socket) => {
        socket.write(`${OK}Content-Length: 100000000\r\n\r\n`)
        flood(socket, 'x'.repeat(65_536))
      },
      gives: { status: 200, body: 'x'.repeat(1_024), error: null },
    },
    {
      does: 'without end is cut after 1 KiB',
      handle: (socket) => {
        socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n`)
        flood(socket, `400\r\n${'y'.repeat(1_024)}\r\n`)
      },
      gives: { status: 200, body: 'y'.repeat(1_024), error: null },
    },
    {
      does: 'whose body is slow counts by its status',
      handle: (socket) => socket.write(`${OK}Content-Length: 100\r\n\r\nab`),
      gives: { status: 200, body: 'ab', error: null },
      timeoutMs: 1_000,
    },
    {
      does: 'that never comes ends in time',
      handle: () => undefined,
      gives: { status: null, error: 'no response within 0.4 s' },
      timeoutMs: SHORT_MS,
    },
    {
      does: 'with endless headers is rejected',
      handle: (socket) => {
        socket.write(OK)
        flood(socket, `X-A: ${'z'.repeat(1_000)}\r\n`)
      },
      gives: { status: null, error: 'the headers of the response exceed 16384 bytes' },
    },
    {
      does: 'of interim responses alone ends in time',
      handle: (socket) => flood(socket, 'HTTP/1.1 102 Processing\r\n\r\n'),
      gives: { status: null, error: 'no response within 0.4 s' },
      timeoutMs: SHORT_MS,
    },
    { does: 'that is no HTTP is rejected', handle: (socket) => socket.end('220 smtp\r\n'), gives: { status: null } },
    {
      does: 'that is a reset is a failure',
      handle: (socket) => socket.resetAndDestroy(),
      gives: { error: 'the connection was reset' },
    },
    {
      does: 'of another protocol is a failure',
      handle: (socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n'),
      gives: { status: 101 },
    },
  ])('$does', async ({ handle, gives, timeoutMs }) => {
    await using server = await startRaw(handle)
    expect(await post(server.url, timeoutMs === undefined ? {} : { timeoutMs })).toMatchObject(gives)
    await expect.poll(server.open).toBe(0)
  })

  test.each([301, 302, 303, 307, 308])('that redirects by %i is not followed', async (status) => {
    await using inner = await startRaw(() => undefined)
    await using receiver = await startReceiver((response) => response.writeHead(status, { Location: inner.url }).end())
    expect(await post(`http://127.0.0.1:${receiver.port}/`)).toMatchObject({ status })
    expect(inner.connections()).toBe(0)
  })
})

describe('no connection is made', () => {
  test.each([
    ...[
      'http://127.0.0.1:PORT/',
      'http://2130706433:PORT/',
      'http://0177.0.0.1:PORT/',
      'http://0x7f.1:PORT/',
      'http://127.1:PORT/',
    ],
    ...[
      'http://localhost.:PORT/',
      'http://[0:0:0:0:0:ffff:7f00:1]:PORT/',
      'http://0x7f000001:PORT/',
      'http://017700000001:PORT/',
    ],
    ...['http://localhost:PORT/', 'http://a.localhost:PORT/', 'http://[::ffff:127.0.0.1]:PORT/', 'http://[::ffff:7f00:1]:PORT/'],
    ...[
      'http://[::1]:PORT/',
      'http://[64:ff9b::7f00:1]:PORT/',
      'http://0.0.0.0:PORT/',
      'http://①②⑦.0.0.1:PORT/',
      'http://a@127.0.0.1:PORT/',
    ],
  ])('to %s without private addresses', async (url) => {
    await using server = await startRaw((socket) => socket.end(`${OK}\r\n`))
    const sent = await post(url.replace('PORT', String(server.port)), { guard: outside })
    expect([sent.status, sent.body]).toEqual([null, null])
    expect(sent.error).toMatch(/private, local or reserved|not allowed|cannot be resolved/)
    expect(sent.error).not.toMatch(/127|::/)
    expect(server.connections()).toBe(0)
  })

  test('to a listener of Mooring itself', async () => {
    await using server = await startRaw((socket) => socket.end(`${OK}\r\n`))
    const own = { hasAddress: (_address: string, port: number) => port === server.port }
    const guard = createAddressGuard({ privateAddresses: true, own })
    const resolve = () => Promise.resolve(['127.0.0.1'])
    for (const host of ['127.0.0.1', 'localhost', 'receiver.test'])
      expect(await post(`http://${host}:${server.port}/`, { guard, resolve })).toMatchObject({ status: null, error: REFUSED })
    expect(server.connections()).toBe(0)
  })

  test.each(['http://127.0.0.1:22/', 'http://127.0.0.1:25/', 'ftp://127.0.0.1:2121/', 'http://127.0.0.1:1/'])(
    'to %s',
    async (url) => {
      expect(await post(url)).toMatchObject({ status: null, error: 'the URL is not allowed' })
    },
  )
})

describe('a name', () => {
  /** Sends to a receiver by a name that the DNS server resolves. */
  async function through(
    zone: Zone,
    { times = 1, ...deps }: Partial<Pick<SendDeps, 'guard' | 'timeoutMs'>> & { readonly times?: number } = {},
  ) {
    await using server = await startRaw((socket) => socket.end(`${OK}Content-Length: 0\r\n\r\n`))
    await using dns = await startDnsServer(zone)
    const resolve = createResolver({ servers: [dns.address], hosts: '/dev/null' })
    const results: Sent[] = []
    for (let count = 0; count < times; count++)
      results.push(await post(`http://receiver.test:${server.port}/`, { ...deps, resolve }))
    return { results, connections: server.connections() }
  }

  test('is resolved by DNS once for an attempt', async () => {
    const names: string[] = []
    const { results, connections } = await through((name) => (names.push(name), ['127.0.0.1']))
    expect(results).toMatchObject([{ status: 200 }])
    expect([names, connections]).toEqual([['receiver.test'], 1])
  })

  test('whose second answer is another address is dialled at the checked one', async () => {
    // The guard allows the first address alone; a second lookup would lead to the receiver.
    const guard = { ...outside, allows: (address: string) => address === '127.0.0.2' }
    const { results, connections } = await through((_name, index) => [index === 0 ? '127.0.0.2' : '127.0.0.1'], { guard })
    expect(results).toMatchObject([{ status: null }])
    expect(connections).toBe(0)
  })

  test('is checked at each attempt', async () => {
    const guard = { ...outside, allows: (address: string) => address === '127.0.0.1' }
    const { results, connections } = await through((_name, index) => [index === 0 ? '127.0.0.1' : '10.0.0.1'], {
      guard,
      times: 2,
    })
    expect(results).toMatchObject([{ status: 200 }, { status: null, error: REFUSED }])
    expect(connections).toBe(1)
  })

  test('with one refused address of several is refused', async () => {
    const { results, connections } = await through(() => ['1.1.1.1', '127.0.0.1'], { guard: outside })
    expect(results).toMatchObject([{ status: null, error: REFUSED }])
    expect(connections).toBe(0)
  })

  test('without addresses is a failure, and so is a DNS server that does not answer', async () => {
    expect((await through(() => [])).results).toMatchObject([{ error: 'the host name cannot be resolved' }])
    expect((await through(() => undefined, { timeoutMs: SHORT_MS })).results).toMatchObject([
      { error: 'no response within 0.4 s' },
    ])
  })
})

test('a receiver that is not there is a failure', async () => {
  expect(await post('http://127.0.0.1:1025/')).toMatchObject({ status: null, error: 'the connection was refused' })
})
