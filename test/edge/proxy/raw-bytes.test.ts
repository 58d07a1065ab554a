import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { block, headers, http2Visitor } from '../../support/edge/http2.ts'
import { DOMAIN, selfSigned, startProxy, tunnelBefore } from '../../support/edge/proxy-fixture.ts'
import { answered } from '../../support/edge/raw-http.ts'
import { SOON } from '../../support/patience.ts'

/** Bytes of a request that are not printable ASCII: forwarded as they are, and percent-encoded in the request log. */

const context = selfSigned(DOMAIN)
const edge = await startProxy({ contextFor: async () => context, limits: { lingerIdleMs: 10, sweepMs: 20 } })
const tunnel = await tunnelBefore(edge, (_received, socket) => {
  socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
})
afterAll(async () => {
  await tunnel[Symbol.asyncDispose]()
  await edge.proxy.close()
})
beforeEach(() => {
  edge.records.length = 0
  tunnel.received.length = 0
})

const ask = (line: string) => answered(edge.httpPort, `${line}\r\nHost: ${tunnel.host}\r\nConnection: close\r\n\r\n`)

test.each([
  { line: 'GET /a\x1b]0;pwned\x07b HTTP/1.1', method: 'GET', path: '/a%1B]0;pwned%07b' },
  { line: 'G\x1b[2J /\x9b2J HTTP/1.1', method: 'G%1B[2J', path: '/%9B2J' },
  { line: `G\x1b[2J http://${tunnel.host}/\x7f?secret HTTP/1.1`, method: 'G%1B[2J', path: '/%7F' },
])('the record of a rejected request to $path is printable', async ({ line, method, path }) => {
  expect(await ask(line)).toMatch(/^HTTP\/1\.1 400 /)
  expect(edge.records).toMatchObject([{ status: 400, method, path }])
})

test('a target with raw bytes is forwarded unchanged, and recorded encoded', async () => {
  const target = '/\xc3\xa4\x80\xff"<>\\^{|}?\xe4'
  expect(await ask(`GET ${target} HTTP/1.1`)).toMatch(/^HTTP\/1\.1 200 /)
  expect(tunnel.received[0]).toMatch(/^GET /)
  expect(tunnel.received[0]?.split(' ')[1]).toBe(target)
  expect(edge.records).toMatchObject([{ status: 200, method: 'GET', path: '/%C3%A4%80%FF"<>\\^{|}' }])
})

test('a redirect to HTTPS encodes the raw bytes of its target', async () => {
  const { host } = edge.serve('0123456789abcdef', undefined, { httpsOnly: true })
  const answer = await answered(edge.httpPort, `GET /\xe4 HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  expect(answer).toContain(`\r\nLocation: https://${host}/%E4\r\n`)
})

test('a target with raw bytes over HTTP/2 is forwarded unchanged, and recorded encoded', async () => {
  using visitor = await http2Visitor(edge.httpsPort, tunnel.host)
  const fields = { ':method': 'GET', ':scheme': 'https', ':authority': tunnel.host, ':path': '/\xc3\xa4' }
  visitor.socket.write(headers(1, block(Object.entries(fields))))
  await vi.waitUntil(() => edge.records.length === 1, SOON)
  expect(tunnel.received[0]).toMatch(/^GET \/\xc3\xa4 HTTP\/1\.1\r\n/)
  expect(edge.records).toMatchObject([{ status: 200, path: '/%C3%A4', protocol: 'h2' }])
})
