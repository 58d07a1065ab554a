import type { Socket } from 'node:net'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { DOMAIN, startProxy, selfSigned, tunnelBefore } from '../../support/edge/proxy-fixture.ts'
import { answered, rawVisitor } from '../../support/edge/raw-http.ts'
import { SOON } from '../../support/patience.ts'

/** Fields that are not allowed in a head are not allowed as trailers either, over HTTP/1.1 and HTTP/2. */

const context = selfSigned(DOMAIN)
const edge = await startProxy({ contextFor: async () => context, limits: { sweepMs: 20 } })
afterAll(async () => {
  await edge.proxy.close()
  expect(edge.failures).toEqual([])
})

const items = (type: 'request' | 'response') => [
  { name: 'X-User', value: '', type },
  { name: 'X-Role', value: 'guest', type },
]
const config = { liveHeaderModifications: [...items('request'), ...items('response')] }

/** Starts a tunnel with header modifications. */
const before = (answer: (received: string, socket: Socket) => void) => tunnelBefore(edge, answer, config)

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
/** Starts a tunnel whose backend responds to each complete body. */
const accepting = () =>
  before((received, socket) => {
    if (/\r\n0(;a=b)?\r\n([^\r]+\r\n)*\r\n$/.test(received)) socket.write(OK)
  })

const post = (host: string, fields: string) =>
  `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n${fields}\r\n5\r\nhello\r\n`

const UNWANTED = [
  { does: 'that the tunnel removes', fields: '', trailer: 'X-User: root' },
  { does: 'that the tunnel sets', fields: '', trailer: 'x-role: admin' },
  { does: 'that CGI reads as a field that the tunnel removes', fields: '', trailer: 'X_User: root' },
  { does: 'that Connection names', fields: 'Connection: X-Hop\r\n', trailer: 'X-Hop: 1' },
]

describe.each(UNWANTED)('a request with a trailer $does', ({ fields, trailer }) => {
  test('is 400, and its backend receives nothing', async () => {
    await using tunnel = await accepting()
    const visitor = rawVisitor(edge.httpPort, `${post(tunnel.host, fields)}0\r\nX-T: 1\r\n${trailer}\r\n\r\n`)
    await visitor.sees('\r\n\r\n')
    expect(visitor.text()).toMatch(/^HTTP\/1.1 400 [^]*Mooring-Error: bad_request/)
    expect(tunnel.received).toEqual([])
    visitor.socket.destroy()
  })

  test.each([
    { where: 'before the trailers', parts: ['', `0\r\nX-T: 1\r\n${trailer}\r\n\r\n`] },
    { where: 'within the trailers', parts: [`0\r\n${trailer}\r\n`, 'X-T: 1\r\n\r\n'] },
    { where: 'before the last byte of the trailers', parts: [`0\r\n${trailer}\r\n\r`, '\n'] },
  ])(
    'is 400 when it arrives in two parts, split $where, and its backend does not get the end',
    async ({ parts: [first, rest] }) => {
      await using tunnel = await accepting()
      const visitor = rawVisitor(edge.httpPort, `${post(tunnel.host, fields)}${first}`)
      await vi.waitUntil(() => tunnel.received[0]?.endsWith(`hello\r\n${first}`), SOON)
      visitor.socket.write(rest ?? '')
      await visitor.sees('\r\n\r\n')
      expect(visitor.text()).toMatch(/^HTTP\/1.1 400 [^]*Mooring-Error: bad_request/)
      expect(tunnel.received).toHaveLength(1)
      expect(tunnel.received[0]?.endsWith(`hello\r\n${first}`)).toBe(true)
      visitor.socket.destroy()
    },
  )
})

test.each(['x-user', 'x-role', 'x_user'])('an HTTP/2 request with %s in its trailers is 400', async (name) => {
  await using tunnel = await accepting()
  const { status, fields } = await tunnel.visitor.ask([':method', 'POST'], {
    body: 'hello',
    trailers: { 'x-t': '1', [name]: 'a' },
  })
  expect([status, fields.includes('bad_request')]).toEqual([400, true])
  expect(tunnel.received.join('')).not.toContain('\r\n0\r\n')
})

test('a connection serves the next request after one with rejected trailers', async () => {
  await using tunnel = await accepting()
  const close = 'Connection: close\r\n'
  const seen = await answered(
    edge.httpPort,
    `${post(tunnel.host, '')}0\r\nX-User: root\r\n\r\n${post(tunnel.host, close)}0\r\n\r\n`,
  )
  expect(seen.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 400', 'HTTP/1.1 200'])
})

test.each(['0\r\nX-T: 1\r\n\r\n', '0\r\n\r\n', '0;a=b\r\n\r\n'])(
  'allowed ends of a request are forwarded unchanged: %j',
  async (end) => {
    await using tunnel = await accepting()
    const visitor = rawVisitor(edge.httpPort, `${post(tunnel.host, 'Connection: close, X-Hop\r\n')}${end}`)
    expect(await visitor.over).toMatch(/^HTTP\/1.1 200 /)
    expect(tunnel.received[0]?.endsWith(`5\r\nhello\r\n${end}`)).toBe(true)
  },
)

describe.each(UNWANTED)('a response with a trailer $does', ({ fields, trailer }) => {
  const response = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n${fields}\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n${trailer}\r\nX-T: 2\r\n\r\n`
  const responding = () =>
    before((received, socket) => {
      if (received.endsWith('\r\n\r\n')) socket.write(response)
    })

  test('arrives without it, and its upstream connection serves the next request', async () => {
    await using tunnel = await responding()
    const ask = `GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\nConnection: close\r\n\r\n`
    for (const times of [1, 2]) {
      const seen = await answered(edge.httpPort, ask)
      expect(seen, `time ${times}`).toMatch(/^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\nX-T: 2\r\n\r\n$/)
    }
    expect(tunnel.received).toHaveLength(1)
  })

  test('arrives without it over HTTP/2', async () => {
    await using tunnel = await responding()
    for (const times of [1, 2]) {
      const { status, body, trailers, code } = await tunnel.visitor.ask()
      expect([status, body, trailers, code], `time ${times}`).toEqual([200, 'hello', ['x-t', '1', 'x-t', '2'], 0])
    }
    expect(tunnel.received).toHaveLength(1)
  })
})
