import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { connect as connectTls, type SecureContext } from 'node:tls'
import { expect, onTestFinished, test, vi } from 'vitest'
import { DOMAIN, startProxy } from '../../support/edge/proxy-fixture.ts'
import { selfSigned } from '../../support/edge/self-signed.ts'
import { tunnelBefore } from '../../support/edge/tunnel-before.ts'
import { freshHostname } from '../../support/edge/ssh-edge.ts'

/** What is still under way when an edge stops: its visitor is told so, and its record says so, not that the target went. */

const context = selfSigned(DOMAIN)
const GRACE_MS = 20

/** An edge with one request that its backend has got, and has answered with `answer` so far. */
async function underWay(answer: string) {
  const edge = await startProxy({ contextFor: async () => context })
  let asked = false
  const tunnel = await tunnelBefore(edge, (_received, socket) => {
    if (!asked) socket.write(answer)
    asked = true
  })
  onTestFinished(() => tunnel[Symbol.asyncDispose]())
  return {
    ...{ edge, tunnel },
    async stop() {
      await vi.waitUntil(() => asked, { timeout: 10_000 })
      await edge.proxy.close(GRACE_MS)
      // As the clients go, which is next.
      await tunnel[Symbol.asyncDispose]()
      await vi.waitUntil(() => edge.records.length > 0, { timeout: 10_000 })
      expect(edge.failures).toEqual([])
      return edge.records
    },
  }
}

/** All that a visitor gets who asks over HTTP/1.1, with `more` after the request line and Host. */
function visit(
  { edge, tunnel: { host } }: Awaited<ReturnType<typeof underWay>>,
  scheme: 'http' | 'https',
  more = '\r\n',
): { readonly text: () => string; readonly errors: readonly unknown[] } {
  const socket =
    scheme === 'http'
      ? connect(edge.httpPort, '127.0.0.1')
      : connectTls({ port: edge.httpsPort, host: '127.0.0.1', servername: host, rejectUnauthorized: false })
  let text = ''
  const errors: unknown[] = []
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1'))).on('error', (error) => errors.push(error))
  socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n${more}`)
  return { text: () => text, errors }
}

test.each(['http', 'https'] as const)('a request over %s that has no answer yet gets 503', async (scheme) => {
  const place = await underWay('')
  const { text } = visit(place, scheme)
  expect(await place.stop()).toMatchObject([{ status: 503, reason: 'edge_stopping', origin: 'edge' }])
  await vi.waitUntil(() => text().includes('\r\n\r\n'), { timeout: 10_000 })
  expect(text()).toMatch(/^HTTP\/1.1 503 [^]*\r\nMooring-Error: edge_stopping\r\n/)
})

test('so does one that is still being sent, without a reset', async () => {
  const place = await underWay('')
  const { text, errors } = visit(place, 'http', `Content-Length: 1000000\r\n\r\n${'x'.repeat(500_000)}`)
  expect(await place.stop()).toMatchObject([{ status: 503, reason: 'edge_stopping' }])
  expect([text().slice(0, 12), errors]).toEqual(['HTTP/1.1 503', []])
})

test('so does one over HTTP/2', async () => {
  const place = await underWay('')
  const answer = place.tunnel.visitor.ask()
  const [records, { status, fields }] = await Promise.all([place.stop(), answer])
  expect(records).toMatchObject([{ status: 503, reason: 'edge_stopping', origin: 'edge' }])
  expect([status, fields]).toEqual([503, expect.arrayContaining(['mooring-error', 'edge_stopping'])])
})

/** What ends with its connection must not look whole. */
const BEGUN = 'HTTP/1.1 200 OK\r\n\r\nsome'

test('an answer that has begun is cut, and recorded as far as it came', async () => {
  const place = await underWay(BEGUN)
  const { text, errors } = visit(place, 'http')
  await vi.waitUntil(() => text().endsWith('some'), { timeout: 10_000 })
  expect(await place.stop()).toMatchObject([{ status: 200, reason: 'edge_stopping', origin: 'backend', bytesOut: 4 }])
  await vi.waitUntil(() => errors.length > 0, { timeout: 10_000 })
  expect(errors).toMatchObject([{ code: 'ECONNRESET' }])
})

test('so it is over HTTP/2', async () => {
  const place = await underWay(BEGUN)
  const session = connectHttp2(`https://127.0.0.1:${place.edge.httpsPort}`, {
    servername: place.tunnel.host,
    rejectUnauthorized: false,
  })
  const stream = session.request({ ':authority': place.tunnel.host })
  const failed = new Promise((resolve) => stream.on('error', resolve))
  await once(stream, 'data')
  expect(await place.stop()).toMatchObject([{ status: 200, reason: 'edge_stopping', origin: 'backend', bytesOut: 4 }])
  expect(await failed).toMatchObject({ code: 'ERR_HTTP2_STREAM_ERROR' })
  session.destroy()
})

test('a request that waits for a client gets 503', async () => {
  const edge = await startProxy({ limits: { holdMs: 60_000 } })
  const held = vi.spyOn(edge.sessions, 'waitFor')
  const { host } = edge.serve(freshHostname(), undefined)
  const socket = connect(edge.httpPort, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  await vi.waitUntil(() => held.mock.calls.length > 0, { timeout: 10_000 })
  await edge.proxy.close(GRACE_MS)
  await vi.waitUntil(() => text.includes('\r\n\r\n'), { timeout: 10_000 })
  expect(text).toMatch(/^HTTP\/1.1 503 [^]*\r\nMooring-Error: edge_stopping\r\n/)
  expect(edge.records).toMatchObject([{ status: 503, reason: 'edge_stopping', origin: 'edge' }])
  expect(edge.failures).toEqual([])
})

test('who is still at the handshake is not served any more', async () => {
  const asked = Promise.withResolvers<undefined>()
  const certificate = Promise.withResolvers<SecureContext>()
  const edge = await startProxy({
    contextFor: async () => {
      asked.resolve(undefined)
      return certificate.promise
    },
  })
  await using tunnel = await tunnelBefore(
    edge,
    (_received, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
  )
  const socket = connectTls({ port: edge.httpsPort, host: '127.0.0.1', servername: tunnel.host, rejectUnauthorized: false })
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1'))).on('error', () => undefined)
  socket.write(`GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`)
  await asked.promise
  const gone = once(socket, 'close')
  const closed = edge.proxy.close(0)
  // Its own timer comes first.
  setTimeout(() => certificate.resolve(context), 1)
  await Promise.all([closed, gone])
  expect([text, edge.records, edge.failures]).toEqual(['', [], []])
})
