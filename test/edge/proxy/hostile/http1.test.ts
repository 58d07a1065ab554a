import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { PROXY_LIMITS } from '../../../../edge/proxy/limits.ts'
import { settableClock } from '../../../support/clocks.ts'
import { createMutator } from '../../../support/edge/attack-tools.ts'
import { IS_FULL, randomSeed } from '../../../support/edge/random-seed.ts'
import { settled } from '../../../support/edge/settled.ts'
import { DOMAIN, startProxy, selfSigned } from '../../../support/edge/proxy-fixture.ts'
import { answered, carelessBackend, OK, rawBackend, rawVisitor } from '../../../support/edge/raw-http.ts'
import { freshHostname } from '../../../support/edge/ssh-edge.ts'
import { SOON } from '../../../support/patience.ts'

const context = selfSigned(DOMAIN)
const edge = await startProxy({
  contextFor: async () => context,
  limits: {
    headMs: 300,
    keepAliveMs: 300,
    slowMs: 500,
    lingerIdleMs: 100,
    sweepMs: 20,
    requestsPerTunnel: 3,
    holdMs: 0,
    halfClosedMs: 100,
  },
})
afterAll(() => edge.proxy.close())

const tunnelTo = (port: number | undefined) => edge.serve(freshHostname(), port).host

const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
const post = (host: string, fields: string, body: string) => `POST / HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n${body}`

describe('an ambiguous request reaches no backend:', () => {
  test.each([
    ['CL.TE', `Content-Length: ${smuggled.length + 5}\r\nTransfer-Encoding: chunked\r\n`, `0\r\n\r\n${smuggled}`],
    ['TE.CL', 'Transfer-Encoding: chunked\r\nContent-Length: 4\r\n', `5c\r\n${smuggled}\r\n0\r\n\r\n`],
    ['TE.TE, the second unknown', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n', `0\r\n\r\n${smuggled}`],
    ['TE.TE, a space before the colon', 'Transfer-Encoding : chunked\r\nContent-Length: 4\r\n', `0\r\n\r\n${smuggled}`],
    ['TE with a tab in its value', 'Transfer-Encoding:\tchunked\tx\r\n', `0\r\n\r\n${smuggled}`],
    ['TE with a vertical tab', 'Transfer-Encoding:\x0bchunked\r\n', `0\r\n\r\n${smuggled}`],
    ['TE on a continued line', 'Transfer-Encoding:\r\n chunked\r\nContent-Length: 4\r\n', `0\r\n\r\n${smuggled}`],
    ['TE behind a bare LF', 'X: y\nTransfer-Encoding: chunked\r\n', `0\r\n\r\n${smuggled}`],
    ['TE behind a bare CR', 'X: y\rTransfer-Encoding: chunked\r\n', `0\r\n\r\n${smuggled}`],
    ['TE xchunked', 'Transfer-Encoding: xchunked\r\n', `0\r\n\r\n${smuggled}`],
    ['CL.CL', `Content-Length: 0\r\nContent-Length: ${smuggled.length}\r\n`, smuggled],
    ['CL as a list', `Content-Length: 0, ${smuggled.length}\r\n`, smuggled],
    ['CL with a sign', `Content-Length: +${smuggled.length}\r\n`, smuggled],
    ['a name with a space', 'Content Length: 0\r\n', smuggled],
    ['a name with a NUL', 'Content-Length\x00: 0\r\n', smuggled],
    ['two hosts', 'Host: other\r\n', ''],
    ['a chunk’s size with a space', 'Transfer-Encoding: chunked\r\n', `0 \r\n\r\n${smuggled}`],
    ['a chunk’s size that overflows', 'Transfer-Encoding: chunked\r\n', `10000000000000000\r\n${smuggled}`],
    ['a bare LF in an extension', 'Transfer-Encoding: chunked\r\n', `2;\nxx\r\n4c\r\n0\r\n\r\n${smuggled}`],
    [
      'a length among the trailers',
      'Transfer-Encoding: chunked\r\n',
      `0\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    ],
  ])('%s', async (_name, fields, body) => {
    await using raw = await carelessBackend()
    const seen = await answered(edge.httpPort, post(tunnelTo(raw.port), fields, body))
    expect(seen).toMatch(/^HTTP\/1.1 (400 [^]*Mooring-Error: bad_request|501 [^]*Mooring-Error: unknown_transfer_coding)/)
    expect(seen.match(/HTTP\/1.1/g)).toHaveLength(1)
    expect(raw.received.join('')).toBe('')
  })
})

test('an invalid chunk ends its connection, and the rest is not forwarded', async () => {
  await using raw = await rawBackend(() => undefined)
  const host = tunnelTo(raw.port)
  const visitor = rawVisitor(edge.httpPort, post(host, 'Transfer-Encoding: chunked\r\n', '3\r\nabc\r\n'))
  await vi.waitUntil(() => raw.received[0]?.endsWith('abc\r\n'), SOON)
  visitor.socket.write(`0\r\nX: y\n\r\n${smuggled}`)
  expect(await visitor.over).toMatch(/400 [^]*bad_request/)
  expect(raw.received.join('')).toMatch(/3\r\nabc\r\n$/)
})

test.each(['GET', 'HEAD', 'DELETE'])('CL.0: a channel serves no further request after a %s with a body', async (method) => {
  await using raw = await carelessBackend()
  const host = tunnelTo(raw.port)
  const attack = `${method} / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${smuggled.length}\r\nConnection: close\r\n\r\n${smuggled}`
  await answered(edge.httpPort, attack)
  await answered(edge.httpPort, `GET /other HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  expect(raw.received).toHaveLength(2)
  expect(raw.received[1]).toMatch(/^GET \/other /)
})

test('bytes after a complete request are the next request, with its own Host', async () => {
  await using raw = await carelessBackend()
  const host = tunnelTo(raw.port)
  const seen = await answered(
    edge.httpPort,
    `${post(host, 'Content-Length: 0\r\n', '')}GET / HTTP/1.1\r\nHost: other.${DOMAIN}\r\nConnection: close\r\n\r\n`,
  )
  expect(seen.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 404'])
})

test.each([
  ['Host', 'Connection: close, Host\r\n', /\r\nHost: /],
  ['X-Forwarded-For', 'Connection: close, X-Forwarded-For\r\n', /X-Forwarded-For: 127\.0\.0\.1\r\n/],
  ['Content-Length', 'Connection: close, Content-Length\r\nContent-Length: 0\r\n', /Content-Length: 0\r\n/],
])('a visitor cannot remove %s with the Connection field', async (_name, fields, wanted) => {
  await using raw = await carelessBackend()
  await answered(edge.httpPort, post(tunnelTo(raw.port), fields, ''))
  expect(raw.received[0]).toMatch(wanted)
})

test.each([
  ['a field without end', 'GET / HTTP/1.1\r\nA: '],
  ['a request line without end', 'GET /'],
])('a head of more than 32 KiB is 431: %s', async (_name, start) => {
  expect(await answered(edge.httpPort, start + 'a'.repeat(40_000))).toMatch(/^HTTP\/1.1 431 /)
})

test.each([
  ['HTTP', () => edge.httpPort],
  ['HTTPS', () => edge.httpsPort],
])('the %s port serves on after random bytes', { retry: 0 }, async (name, port) => {
  await using raw = await carelessBackend()
  const host = tunnelTo(raw.port)
  const seed = post(host, 'Transfer-Encoding: chunked\r\nConnection: close\r\n', '3\r\nabc\r\n0\r\n\r\n')
  const seeded = IS_FULL ? randomSeed(`random bytes for ${name}`) : 1
  const random = createMutator(seeded)
  const noise = (bytes: Buffer) => {
    for (let count = 0; count < 3; count++) bytes[random.below(bytes.length)] = random.below(256)
    return bytes.toString('latin1')
  }
  const visitors = Array.from({ length: 200 }, (_, index) =>
    answered(port(), noise(index % 4 === 0 ? random.bytes(300) : Buffer.from(seed))),
  )
  await Promise.all(visitors)
  await vi.waitFor(async () => {
    expect(await answered(edge.httpPort, post(host, 'Connection: close\r\n', '')), `seed ${seeded}`).toMatch(/200 OK/)
  }, SOON)
  expect(edge.failures, `seed ${seeded}`).toEqual([])
})

describe('a slow visitor', () => {
  test('gets 408 during its head', async () => {
    expect(await answered(edge.httpPort, 'GET / HTTP/1.1\r\nHost')).toMatch(/^HTTP\/1.1 408 /)
  })

  test('is disconnected when it sends nothing', async () => {
    expect(await answered(edge.httpPort, '')).toBe('')
  })

  test('is disconnected during its TLS handshake', async () => {
    expect(await answered(edge.httpsPort, '\x16\x03')).toBe('')
  })

  test('gets 408 during its body', async () => {
    await using raw = await rawBackend(() => undefined)
    expect(await answered(edge.httpPort, post(tunnelTo(raw.port), 'Content-Length: 100\r\n', 'a'))).toMatch(/^HTTP\/1.1 408 /)
  })

  test('gets all of a response that began before the end of its body', async () => {
    const parts = 20
    await using raw = await rawBackend((_received, socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      let sent = 0
      const timer = setInterval(() => {
        sent += 1
        socket.write(sent < parts ? '1\r\nx\r\n' : '0\r\n\r\n')
        if (sent === parts) clearInterval(timer)
      }, 100)
    })
    const got = await answered(edge.httpPort, post(tunnelTo(raw.port), 'Expect: 100-continue\r\nContent-Length: 10\r\n', ''))
    expect(got).toMatch(/200 OK[^]*0\r\n\r\n$/)
    expect(edge.records.at(-1)).toMatchObject({ status: 200, reason: null, bytesOut: parts - 1 })
  })
})

test('requests of a tunnel above its limit are 429 until others have ended', async () => {
  await using raw = await rawBackend((received, socket) => {
    if (received.includes('/now')) socket.write(OK)
  })
  const host = tunnelTo(raw.port)
  const ask = (path: string) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
  const stuck = [1, 2, 3].map(() => rawVisitor(edge.httpPort, ask('/never')))
  await vi.waitUntil(() => raw.received.length === 3, SOON)
  expect(await answered(edge.httpPort, ask('/now'))).toMatch(/429 [^]*overloaded[^]*Retry-After/)
  for (const { socket } of stuck) socket.destroy()
  await vi.waitFor(async () => expect(await answered(edge.httpPort, ask('/now'))).toMatch(/200 OK/), SOON)
})

test('an upload that the backend does not read stops when the buffers are full', async () => {
  const clock = settableClock()
  await using own = await startProxy({ clock, limits: { sweepMs: 20 } })
  await using raw = await rawBackend((_received, socket) => socket.pause())
  const { host } = own.serve(freshHostname(), raw.port)
  const visitor = connect(own.httpPort, '127.0.0.1')
  visitor.on('error', () => visitor.destroy())
  visitor.write(post(host, 'Content-Length: 300000000\r\n', ''))
  const part = Buffer.alloc(65_536)
  const send = () => {
    while (visitor.write(part)) continue
  }
  visitor.on('drain', send)
  send()
  await once(visitor, 'drain')
  // Includes the kernel's buffers.
  expect(await settled(() => visitor.bytesWritten - visitor.writableLength)).toBeLessThan(64_000_000)
  // The timeout of slow bodies does not end the upload: the edge itself stops the visitor.
  clock.pass(1.5 * PROXY_LIMITS.slowMs)
  const { reads } = clock
  await vi.waitUntil(() => clock.reads >= reads + 10, SOON)
  expect([visitor.destroyed, visitor.writableNeedDrain]).toEqual([false, true])
  visitor.destroy()
})

// visitors.long.test.ts measures their memory, with an edge in its own process.
test('the edge closes a hundred downloads of visitors that do not read', async () => {
  const large = Buffer.alloc(20_000_000)
  await using raw = await rawBackend((_received, socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${large.length}\r\n\r\n`)
    socket.write(large)
  })
  await using patient = await startProxy({ limits: { slowMs: 2_000, sweepMs: 50 } })
  patient.serve('00000000000000aa', raw.port)
  const visitors = Array.from({ length: 100 }, () => {
    const socket = connect(patient.httpPort, '127.0.0.1')
    socket.pause()
    socket.on('error', () => socket.destroy())
    socket.write(`GET / HTTP/1.1\r\nHost: 00000000000000aa.${DOMAIN}\r\n\r\n`)
    return socket
  })
  await vi.waitUntil(() => raw.received.length === 100, SOON)
  await vi.waitUntil(() => patient.records.length === 100, SOON)
  expect(patient.records.every(({ status, reason }) => status === 200 && reason === 'visitor_gone')).toBe(true)
  await patient.proxy.close()
  for (const visitor of visitors) visitor.destroy()
})

test('an idle upgraded connection stays open, and closes after one side has ended', async () => {
  await using raw = await rawBackend((received, socket) => {
    if (received.endsWith('\r\n\r\n')) socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n\r\n')
  })
  const host = tunnelTo(raw.port)
  const ask = `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`
  const [idle, left] = [rawVisitor(edge.httpPort, ask), rawVisitor(edge.httpPort, ask)]
  await Promise.all([idle.sees('\r\n\r\n'), left.sees('\r\n\r\n')])
  left.socket.end()
  await left.over
  expect(idle.socket.readyState).toBe('open')
  idle.socket.destroy()
})
