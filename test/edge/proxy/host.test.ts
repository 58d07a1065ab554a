import { once } from 'node:events'
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { connect } from 'node:tls'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { curl, TRANSPORTS } from '../../support/edge/visitor.ts'
import { DOMAIN, startProxy, selfSigned } from '../../support/edge/proxy-fixture.ts'
import { answered, rawBackend } from '../../support/edge/raw-http.ts'

/** How the edge finds the tunnel of a request, and rejects an invalid Host. */

const context = selfSigned(DOMAIN)
const edge = await startProxy({ contextFor: async () => context })
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const backend = await rawBackend((_received, socket) => socket.write(OK))
const { host } = edge.serve('0000000000000001', backend.port)
const other = edge.serve('0000000000000002', backend.port).host
afterAll(async () => {
  await edge.proxy.close()
  await backend[Symbol.asyncDispose]()
  expect(edge.failures).toEqual([])
})

interface Row {
  readonly does: string
  readonly args?: readonly string[]
  /** Host of the URL and of the SNI. */
  readonly visited?: string
  readonly answer: readonly [number, string | undefined]
  /** Whether the stream is reset over HTTP/2, because the request is malformed (RFC 9113, section 8.1.1). */
  readonly isReset?: true
}

/** Exit code of curl for a reset stream. */
const STREAM_RESET = 92
const BAD = [400, 'bad_request'] as const

describe.each(TRANSPORTS)('over %s', (transport) => {
  test.each<Row>([
    { does: 'in upper case', args: ['-H', `Host: ${host.toUpperCase()}`], answer: [200, undefined] },
    { does: 'with a port', args: ['-H', `Host: ${host}:8080`], answer: [200, undefined] },
    { does: 'with a final dot', args: ['-H', `Host: ${host}.`], answer: [200, undefined] },
    { does: 'with a final dot and a port', args: ['-H', `Host: ${host}.:8080`], answer: [200, undefined] },
    { does: 'of another domain', visited: 'www.example.com', answer: [404, 'unknown_host'] },
    { does: 'of the domain itself', visited: DOMAIN, answer: [404, 'unknown_host'] },
    { does: 'without a tunnel', visited: `ffffffffffffffff.${DOMAIN}`, answer: [404, 'unknown_host'] },
    { does: 'below the host of a tunnel', visited: `a.${host}`, answer: [404, 'unknown_host'] },
    { does: 'with an invalid character', args: ['-H', 'Host: a!b'], answer: BAD },
    { does: 'that is empty', args: ['-H', 'Host;'], answer: BAD, isReset: true },
    { does: 'that is missing', args: ['-H', 'Host:'], answer: BAD, isReset: true },
    { does: 'of 300 bytes', args: ['-H', `Host: ${'a'.repeat(300)}.${DOMAIN}`], answer: BAD },
    // HTTP/2 clients send header blocks of at most 64 KiB.
    { does: 'of 64 KiB', args: ['-H', `Host: ${'a'.repeat(transport === 'h2' ? 65_000 : 65_536)}`], answer: BAD },
  ])('a Host $does gets $answer', async ({ args = [], visited = host, answer, isReset }) => {
    const asked = curl(edge, { transport, host: visited, args })
    if (transport === 'h2' && isReset) return expect(asked).rejects.toMatchObject({ code: STREAM_RESET })
    const { status, reason } = await asked
    expect([status, reason]).toEqual(answer)
  })

  test.each<Row>([
    {
      does: 'of the same host as Host',
      args: ['-H', `Host: ${host}`, '--request-target', `http://${host}/a`],
      answer: [200, undefined],
      isReset: true,
    },
    {
      does: 'of this host, with another Host',
      args: ['-H', `Host: ${other}`, '--request-target', `http://${host}:8080/a`],
      answer: [200, undefined],
      isReset: true,
    },
    {
      does: 'of another host, without Host',
      args: ['--request-target', `http://${other}/a`],
      answer: transport === 'http' ? [200, undefined] : [421, 'misdirected'],
      isReset: true,
    },
    {
      does: 'of an unknown host, with the Host of a tunnel',
      args: ['--request-target', 'http://b.test/a'],
      answer: transport === 'http' ? [404, 'unknown_host'] : [421, 'misdirected'],
      isReset: true,
    },
  ])('a target in absolute form $does gets $answer', async ({ args = [], answer, isReset }) => {
    const asked = curl(edge, { transport, host, args })
    if (transport === 'h2' && isReset) return expect(asked).rejects.toMatchObject({ code: STREAM_RESET })
    const { status, reason } = await asked
    expect([status, reason]).toEqual(answer)
  })

  test('a Host other than the SNI is 421 over TLS, and served over HTTP', async () => {
    const { status, reason } = await curl(edge, { transport, host, args: ['-H', `Host: ${other}`] })
    expect([status, reason]).toEqual(transport === 'http' ? [200, undefined] : [421, 'misdirected'])
  })
})

test.each(TRANSPORTS)('a head that is too large is 431 over %s', async (transport) => {
  const { status, reason } = await curl(edge, { transport, host, args: ['-H', `X: ${'a'.repeat(40_000)}`] })
  expect([status, reason]).toEqual([431, 'head_too_large'])
})

test.each(['http', 'https'] as const)(
  'over %s, HTTP/1.0 without Host is served by the host of an absolute target',
  async (transport) => {
    const { status } = await curl(edge, { transport, host, args: ['-0', '-H', 'Host:', '--request-target', `http://${host}/a`] })
    expect(status).toBe(200)
  },
)

test.each(['gzip', 'gzip, chunked', 'identity'])('the transfer coding %j is 501, and closes the connection', async (coding) => {
  const asked = `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: ${coding}\r\n\r\n0\r\n\r\n`
  expect(await answered(edge.httpPort, asked)).toMatch(/^HTTP\/1\.1 501 [^]*mooring-error: unknown_transfer_coding/i)
  expect(edge.records.at(-1)).toMatchObject({ status: 501, reason: 'unknown_transfer_coding', origin: 'edge' })
})

test('the backend receives the host of an absolute target in place of Host', async () => {
  backend.received.length = 0
  const asked = `GET http://${host}:8080/a?b HTTP/1.1\r\nHost: ${other}\r\nX-Own: 1\r\nConnection: close\r\n\r\n`
  expect(await answered(edge.httpPort, asked)).toMatch(/ 200 OK/)
  const [sent = ''] = backend.received
  expect(sent).toMatch(new RegExp(`^GET /a\\?b HTTP/1.1\r\nHost: ${host}:8080\r\nX-Own: 1\r\n`))
  expect(sent).toContain(`X-Forwarded-Host: ${host}:8080\r\n`)
  expect(sent).not.toContain(other)
})

test('an SNI with a final dot is the same host', async () => {
  const socket = connect({ host: '127.0.0.1', port: edge.httpsPort, servername: `${host}.`, rejectUnauthorized: false })
  onTestFinished(() => void socket.destroy())
  await once(socket, 'secureConnect')
  socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString('latin1', 9, 12)).toBe('200')
})

test('the preface of HTTP/2 without TLS is 400', async () => {
  expect(await answered(edge.httpPort, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 [^]*bad_request/)
})

test('plain HTTP on the port for HTTPS is 400, names https://, and is not recorded', async () => {
  const before = edge.records.length
  const answer = await answered(edge.httpsPort, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*Connection: close\r\n[^]*use https:\/\/ instead of http:\/\/\n$/)
  expect(edge.records).toHaveLength(before)
})

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('a resumed session of %s', (version) => {
  const about = { host: '127.0.0.1', port: edge.httpsPort, servername: host, rejectUnauthorized: false }
  const versions = { minVersion: version, maxVersion: version } as const

  async function ask(session: Buffer | undefined) {
    const socket = connect({ ...about, ...versions, session })
    onTestFinished(() => void socket.destroy())
    const next = new Promise<Buffer>((resolve) => socket.on('session', resolve))
    await once(socket, 'secureConnect')
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    return { status: answer.toString('latin1', 9, 12), isResumed: socket.isSessionReused(), next }
  }

  test('is served', async () => {
    const first = await ask(undefined)
    expect(first).toMatchObject({ status: '200', isResumed: false })
    expect(await ask(await first.next)).toMatchObject({ status: '200', isResumed: true })
  })

  test('is served over HTTP/2', async () => {
    async function askOverHttp2(session: Buffer | undefined) {
      const socket = connect({ ...about, ...versions, session, ALPNProtocols: ['h2'] })
      const next = new Promise<Buffer>((resolve) => socket.on('session', resolve))
      await once(socket, 'secureConnect')
      const client = connectHttp2(`https://${host}`, { createConnection: () => socket })
      client.on('error', () => undefined)
      onTestFinished(() => client.destroy())
      const [headers] = (await once(client.request({ ':path': '/' }), 'response')) as [IncomingHttpHeaders]
      return { status: headers[':status'], isResumed: socket.isSessionReused(), next }
    }
    const first = await askOverHttp2(undefined)
    expect(first).toMatchObject({ status: 200, isResumed: false })
    expect(await askOverHttp2(await first.next)).toMatchObject({ status: 200, isResumed: true })
  })
})
