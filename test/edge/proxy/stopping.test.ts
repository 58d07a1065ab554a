import { closeOf } from '../../support/edge/raw-http.ts'
import { http2Session } from '../../support/edge/http2.ts'
import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls, type SecureContext } from 'node:tls'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { ProxyLimits } from '../../../edge/proxy/limits.ts'
import { DOMAIN, startProxy, selfSigned, tunnelBefore } from '../../support/edge/proxy-fixture.ts'
import { freshHostname } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

/** Requests under way when an edge stops: visitor and record get the reason `edge_stopping`. */

const context = selfSigned(DOMAIN)
const GRACE_MS = 20

/** Starts an edge whose backend responds to the first request with `answer`, which may be incomplete. */
async function underWay(answer: string, limits: Partial<ProxyLimits> = {}) {
  const edge = await startProxy({ contextFor: async () => context, limits })
  let asked = false
  const tunnel = await tunnelBefore(edge, (_received, socket) => {
    if (!asked) socket.write(answer)
    asked = true
  })
  onTestFinished(() => tunnel[Symbol.asyncDispose]())
  return {
    ...{ edge, tunnel },
    async stop() {
      await vi.waitUntil(() => asked, SOON)
      await edge.proxy.close(GRACE_MS)
      // Clients disconnect after the proxy has closed.
      await tunnel[Symbol.asyncDispose]()
      await vi.waitUntil(() => edge.records.length > 0, SOON)
      expect(edge.failures).toEqual([])
      return edge.records
    },
  }
}

/** Sends a request over HTTP/1.1. @param more text after the request line and Host */
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

test.each(['http', 'https'] as const)('a request over %s without a response gets 503', async (scheme) => {
  const fixture = await underWay('')
  const { text } = visit(fixture, scheme)
  expect(await fixture.stop()).toMatchObject([{ status: 503, reason: 'edge_stopping', origin: 'edge' }])
  await vi.waitUntil(() => text().includes('\r\n\r\n'), SOON)
  expect(text()).toMatch(/^HTTP\/1.1 503 [^]*\r\nMooring-Error: edge_stopping\r\n/)
})

test('a request that is still being sent gets 503, without a reset', async () => {
  const fixture = await underWay('', { farewellMs: 60_000, lingerMs: 60_000, lingerIdleMs: 60_000 })
  const { text, errors } = visit(fixture, 'http', `Content-Length: 1000000\r\n\r\n${'x'.repeat(500_000)}`)
  expect(await fixture.stop()).toMatchObject([{ status: 503, reason: 'edge_stopping' }])
  await vi.waitUntil(() => text().includes('\r\n\r\n'), { timeout: 60_000 })
  expect([text().slice(0, 12), errors]).toEqual(['HTTP/1.1 503', []])
})

test('a request over HTTP/2 without a response gets 503', async () => {
  const fixture = await underWay('')
  const answer = fixture.tunnel.visitor.ask()
  const [records, { status, fields }] = await Promise.all([fixture.stop(), answer])
  expect(records).toMatchObject([{ status: 503, reason: 'edge_stopping', origin: 'edge' }])
  expect([status, fields]).toEqual([503, expect.arrayContaining(['mooring-error', 'edge_stopping'])])
})

/** Response that ends with its connection. Cut off, it must not look complete. */
const BEGUN = 'HTTP/1.1 200 OK\r\n\r\nsome'

test('a response that has begun is reset, and recorded with its bytes so far', async () => {
  const fixture = await underWay(BEGUN)
  const { text, errors } = visit(fixture, 'http')
  await vi.waitUntil(() => text().includes('some'), SOON)
  expect(await fixture.stop()).toMatchObject([{ status: 200, reason: 'edge_stopping', origin: 'backend', bytesOut: 4 }])
  await vi.waitUntil(() => errors.length > 0, SOON)
  expect(errors).toMatchObject([{ code: 'ECONNRESET' }])
})

test('a response over HTTP/2 that has begun is reset, and recorded with its bytes so far', async () => {
  const fixture = await underWay(BEGUN)
  const session = http2Session(fixture.edge.httpsPort, fixture.tunnel.host)
  const stream = session.request({ ':authority': fixture.tunnel.host })
  const failed = new Promise((resolve) => stream.on('error', resolve))
  await once(stream, 'data')
  expect(await fixture.stop()).toMatchObject([{ status: 200, reason: 'edge_stopping', origin: 'backend', bytesOut: 4 }])
  expect(await failed).toMatchObject({ code: 'ERR_HTTP2_STREAM_ERROR' })
  session.destroy()
})

test('a request that waits for a client gets 503', async () => {
  const edge = await startProxy({ limits: { holdMs: 60_000 } })
  const held = vi.spyOn(edge.sessions, 'waitFor')
  const { host } = edge.serve(freshHostname(), undefined)
  const socket = connect(edge.httpPort, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1'))).on('error', () => undefined)
  socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  await vi.waitUntil(() => held.mock.calls.length > 0, SOON)
  await edge.proxy.close(GRACE_MS)
  await vi.waitUntil(() => text.includes('\r\n\r\n'), SOON)
  expect(text).toMatch(/^HTTP\/1.1 503 [^]*\r\nMooring-Error: edge_stopping\r\n/)
  expect(edge.records).toMatchObject([{ status: 503, reason: 'edge_stopping', origin: 'edge' }])
  expect(edge.failures).toEqual([])
})

test('a visitor in its TLS handshake is disconnected', async () => {
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
  const gone = closeOf(socket)
  const closed = edge.proxy.close(0)
  // The timer of `close` fires first.
  setTimeout(() => certificate.resolve(context), 1)
  await Promise.all([closed, gone])
  expect([text, edge.records, edge.failures]).toEqual(['', [], []])
})
