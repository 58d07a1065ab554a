import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { closeOf, rawBackend } from '../../support/edge/raw-http.ts'
import { DOMAIN, selfSigned, startProxy } from '../../support/edge/proxy-fixture.ts'
import { freshHostname } from '../../support/edge/ssh-edge.ts'
import { http2Session } from '../../support/edge/http2.ts'
import { SOON } from '../../support/patience.ts'

/** Responses that lose their client half way must not look complete (RFC 9112, section 8). */

const cleanup = new AsyncDisposableStack()
const context = selfSigned(DOMAIN)
const contextFor = async () => context
const edge = cleanup.use(await startProxy({ contextFor, limits: { sweepMs: 20 } }))
afterAll(async () => {
  await cleanup.disposeAsync()
  expect(edge.failures).toEqual([])
})

/** Responses of backends that begin with `half`. */
const FRAMINGS = {
  'that ends with its connection': ['HTTP/1.1 200 OK\r\n\r\nhalf', ' and rest'],
  'of HTTP/1.0': ['HTTP/1.0 200 OK\r\n\r\nhalf', ' and rest'],
  'in chunks': ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n', '9\r\n and rest\r\n0\r\n\r\n'],
} as const
type Framing = keyof typeof FRAMINGS

/** Starts a tunnel whose backend sends the first half of a response. `finish` sends the rest; `cut` ends the client's session. */
async function halfway(framing: Framing, own = edge) {
  const [half, rest] = FRAMINGS[framing]
  let backend: Socket | undefined
  const { port, [Symbol.asyncDispose]: dispose } = await rawBackend((_received, socket) => {
    backend = socket
    socket.write(half)
  })
  const { hostname, host } = own.serve(freshHostname(), undefined)
  const session = own.sessions.connect(hostname, port)
  return {
    host,
    finish: () => backend?.end(rest),
    cut: () => session.close('closed', 'its client is killed'),
    [Symbol.asyncDispose]: dispose,
  }
}

const HTTP1 = ['http', 'https'] as const

/** Sends a request. `over` has the received text, and the code of the error with which the connection ended. */
async function visit(scheme: (typeof HTTP1)[number], host: string, minor: 0 | 1, own = edge) {
  const socket =
    scheme === 'http'
      ? connect(own.httpPort, '127.0.0.1')
      : connectTls({ port: own.httpsPort, host: '127.0.0.1', servername: host, rejectUnauthorized: false })
  let text = ''
  let code: unknown
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.on('error', (error: NodeJS.ErrnoException) => (code = error.code))
  const over = closeOf(socket).then(() => ({ text, code }))
  socket.write(`GET / HTTP/1.${minor}\r\nHost: ${host}\r\n\r\n`)
  return { socket, text: () => text, over }
}

describe.each(HTTP1)('over %s', (scheme) => {
  test.each(Object.keys(FRAMINGS) as Framing[])(
    'an HTTP/1.1 visitor gets a response %s in chunks, the last one only when it is complete',
    async (framing) => {
      await using whole = await halfway(framing)
      const visitor = await visit(scheme, whole.host, 1)
      await vi.waitUntil(() => visitor.text().includes('half'), SOON)
      whole.finish()
      await vi.waitUntil(() => visitor.text().endsWith('\r\n0\r\n\r\n'), SOON)
      expect(visitor.text()).toMatch(/\r\nTransfer-Encoding: chunked\r\n[^]*\r\n\r\n4\r\nhalf\r\n9\r\n and rest\r\n0\r\n\r\n$/)
      visitor.socket.destroy()

      await using cut = await halfway(framing)
      const other = await visit(scheme, cut.host, 1)
      await vi.waitUntil(() => other.text().includes('half'), SOON)
      cut.cut()
      expect((await other.over).text).toMatch(/\r\n\r\n4\r\nhalf\r\n$/)
      expect(edge.records.at(-1)).toMatchObject({ status: 200, reason: 'upstream_reset', bytesOut: 4 })
    },
  )

  test.each(Object.keys(FRAMINGS) as Framing[])(
    'an HTTP/1.0 visitor of a response %s gets a reset when it is cut',
    async (framing) => {
      await using whole = await halfway(framing)
      const visitor = await visit(scheme, whole.host, 0)
      await vi.waitUntil(() => visitor.text().endsWith('half'), SOON)
      whole.finish()
      expect(await visitor.over).toEqual({ text: expect.stringMatching(/\r\n\r\nhalf and rest$/) as string, code: undefined })

      await using cut = await halfway(framing)
      const other = await visit(scheme, cut.host, 0)
      await vi.waitUntil(() => other.text().endsWith('half'), SOON)
      cut.cut()
      expect((await other.over).code).toBe('ECONNRESET')
    },
  )

  test('an HTTP/1.1 visitor keeps its connection after a response that ended with that of its backend', async () => {
    await using tunnel = await halfway('that ends with its connection')
    const visitor = await visit(scheme, tunnel.host, 1)
    for (const count of [1, 2]) {
      await vi.waitUntil(() => visitor.text().split('half').length === count + 1, SOON)
      tunnel.finish()
      await vi.waitUntil(() => visitor.text().split('\r\n0\r\n\r\n').length === count + 1, SOON)
      if (count === 1) visitor.socket.write(`GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`)
    }
    visitor.socket.destroy()
  })

  test('an HTTP/1.0 visitor that does not read gets a reset', async () => {
    await using own = await startProxy({ contextFor, limits: { sweepMs: 20, slowMs: 100 } })
    await using backend = await rawBackend((_received, socket) => {
      socket.end(`HTTP/1.0 200 OK\r\n\r\n${'x'.repeat(32 * 1024 * 1024)}`)
    })
    const { host } = own.serve(freshHostname(), backend.port)
    const visitor = await visit(scheme, host, 0, own)
    visitor.socket.pause()
    await vi.waitUntil(() => own.records.length === 1, SOON)
    visitor.socket.resume()
    expect((await visitor.over).code).toBe('ECONNRESET')
  })
})

describe('over HTTP/2', () => {
  test.each(Object.keys(FRAMINGS) as Framing[])('a visitor of a response %s gets RST_STREAM when it is cut', async (framing) => {
    await using tunnel = await halfway(framing)
    const session = http2Session(edge.httpsPort, tunnel.host)
    for (const [end, code] of [
      [tunnel.finish, 0],
      [tunnel.cut, 2],
    ] as const) {
      const stream = session.request({ ':authority': tunnel.host })
      let [text, ended] = ['', false]
      stream.on('error', () => undefined)
      stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
      stream.on('end', () => (ended = true))
      await vi.waitUntil(() => text === 'half', SOON)
      const closed = closeOf(stream)
      end()
      await closed
      expect([stream.rstCode, ended, text]).toEqual([code, code === 0, code === 0 ? 'half and rest' : 'half'])
    }
    session.destroy()
  })
})
