import { afterAll, expect, test, vi } from 'vitest'
import {
  block,
  continuation,
  data,
  FRAME,
  type Frame,
  headers,
  http2Visitor,
  openHeaders,
  reset,
} from '../../../support/edge/http2.ts'
import { DOMAIN, selfSigned, startProxy } from '../../../support/edge/proxy-fixture.ts'
import { carelessBackend, rawBackend } from '../../../support/edge/raw-http.ts'
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
    resets: 20,
    halfClosedMs: 100,
  },
})
afterAll(() => edge.proxy.close())

const tunnelTo = (port: number | undefined) => edge.serve(freshHostname(), port).host

const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
const pseudo = (host: string): [string, string][] => [
  [':method', 'POST'],
  [':scheme', 'https'],
  [':authority', host],
  [':path', '/'],
]
/** Status 400 as an index of HPACK's static table (RFC 7541, appendix A). */
const REFUSED = 0x8c
const isRefusal = ({ type, payload }: Frame) =>
  type === FRAME.reset || type === FRAME.goaway || (type === FRAME.headers && payload[0] === REFUSED)

test.each<[string, [string, string][], string | undefined]>([
  ['a line end in a value', [['x', `y\r\n\r\n${smuggled}`]], undefined],
  ['a bare LF in a value', [['x', 'y\nz: a']], undefined],
  ['a NUL in a value', [['x', 'y\0z']], undefined],
  ['a line end in a name', [['x: y\r\nz', 'a']], undefined],
  ['a colon in a name', [['x:y', 'a']], undefined],
  ['a space in a name', [['x y', 'a']], undefined],
  ['a name in upper case', [['X', 'a']], undefined],
  ['transfer-encoding', [['transfer-encoding', 'chunked']], `0\r\n\r\n${smuggled}`],
  ['connection', [['connection', 'close']], undefined],
  [
    'two lengths',
    [
      ['content-length', '1'],
      ['content-length', '9'],
    ],
    'abc',
  ],
  ['a body shorter than its length', [['content-length', '9']], 'abc'],
  ['a body longer than its length', [['content-length', '1']], `a${smuggled}`],
  ['a length without a body', [['content-length', '5']], undefined],
  ['another Host than authority', [['host', 'other']], undefined],
  ['two authorities', [[':authority', 'other']], undefined],
  ['two paths', [[':path', '/other']], undefined],
  ['an unknown pseudo-header field', [[':x', 'y']], undefined],
])('%s is rejected, or smuggles no request', async (_name, fields, body) => {
  await using raw = await carelessBackend()
  const host = tunnelTo(raw.port)
  using visitor = await http2Visitor(edge.httpsPort, host)
  const head = headers(1, block([...pseudo(host), ...fields]), body === undefined ? 'ends' : 'goes on')
  visitor.socket.write(body === undefined ? head : Buffer.concat([head, data(1, body)]))
  await vi.waitUntil(() => visitor.seen.some(isRefusal), SOON)
  const got = raw.received.join('')
  expect(got).not.toContain('smuggled')
  expect(got.split('\r\n\r\n').slice(1).join('')).not.toContain('HTTP/1.1')
})

test.each<[string, [string, string][]]>([
  ['a space in the path', [[':path', '/ HTTP/1.1\r\nx: y']]],
  ['a path in absolute form', [[':path', 'http://other/']]],
  ['an empty path', [[':path', '']]],
  ['a space in the method', [[':method', 'GET / HTTP/1.1\r\nx:']]],
  ['a line end in the authority', [[':authority', 'a\r\nx: y']]],
  ['an empty authority', [[':authority', '']]],
])('%s is rejected', async (_name, instead) => {
  await using raw = await carelessBackend()
  const host = tunnelTo(raw.port)
  using visitor = await http2Visitor(edge.httpsPort, host)
  const changed = new Map([...pseudo(host), ...instead])
  visitor.socket.write(headers(1, block([...changed])))
  await vi.waitUntil(() => visitor.seen.some(isRefusal), SOON)
  expect(raw.received).toEqual([])
})

test('the edge disconnects a visitor that resets streams as fast as it opens them, and closes its channels', async () => {
  await using raw = await rawBackend(() => undefined)
  const host = tunnelTo(raw.port)
  using visitor = await http2Visitor(edge.httpsPort, host)
  const fields = block(pseudo(host))
  const flood = Array.from({ length: 2_000 }, (_, index) => [headers(2 * index + 1, fields), reset(2 * index + 1)]).flat()
  visitor.socket.write(Buffer.concat(flood))
  await visitor.closed
  await vi.waitUntil(() => edge.sessions.of(host.slice(0, 16))[0]?.channels === 0, SOON)
})

test('a head without end uses bounded memory', async () => {
  const host = tunnelTo(undefined)
  using visitor = await http2Visitor(edge.httpsPort, host)
  visitor.socket.write(openHeaders(1, block(pseudo(host))))
  const more = continuation(1, block([['x', 'y'.repeat(8_000)]]))
  const send = () => {
    while (!visitor.socket.destroyed && visitor.socket.write(more)) continue
  }
  visitor.socket.on('drain', send)
  send()
  await visitor.closed
  // The edge closes the connection long before it holds so much. The number includes the kernel's buffers.
  expect(visitor.socket.bytesWritten).toBeLessThan(64_000_000)
})

test.each<[string, (host: string) => Buffer]>([
  ['nothing', () => Buffer.alloc(0)],
  ['half a head', (host) => openHeaders(1, block(pseudo(host)))],
])('a visitor that sends %s is disconnected after headMs', async (_does, said) => {
  await using own = await startProxy({ contextFor: async () => context, limits: { headMs: 200, sweepMs: 20 } })
  const { host } = own.serve('00000000000000ab', undefined)
  using visitor = await http2Visitor(own.httpsPort, host)
  visitor.socket.write(said(host))
  await visitor.closed
})

test('the edge stops reading from the backend when the visitor does not read', async () => {
  const large = Buffer.alloc(20_000_000)
  await using raw = await rawBackend((_received, socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${large.length}\r\n\r\n`)
    socket.write(large)
  })
  const host = tunnelTo(raw.port)
  using visitor = await http2Visitor(edge.httpsPort, host)
  // The visitor never extends its window of 64 KiB, so that the edge resets the stream.
  visitor.socket.write(headers(1, block(pseudo(host))))
  await vi.waitUntil(() => visitor.seen.some(({ type }) => type === FRAME.reset), SOON)
  const record = edge.records.findLast(({ tunnel }) => host.startsWith(tunnel.slice('uid-'.length)))
  expect(record?.bytesOut).toBeLessThan(1_000_000)
})
