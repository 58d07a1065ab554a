import { execFile } from 'node:child_process'
import type { Socket } from 'node:net'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { DOMAIN, startProxy, selfSigned, tunnelBefore } from '../../support/edge/proxy-fixture.ts'
import { answered } from '../../support/edge/raw-http.ts'
import { SOON } from '../../support/patience.ts'

/** Translation of requests and responses between HTTP/2 visitors and HTTP/1.1 backends. */

const run = promisify(execFile)
const context = selfSigned(DOMAIN)
const edge = await startProxy({ contextFor: async () => context, limits: { sweepMs: 20 } })
afterAll(async () => {
  await edge.proxy.close()
  expect(edge.failures).toEqual([])
})

const before = (answer: (received: string, socket: Socket) => void, config = {}) => tunnelBefore(edge, answer, config)

/** Starts a tunnel whose backend sends these bytes after each request head. */
const saying = (sent: string, config = {}) =>
  before((received, socket) => {
    if (received.endsWith('\r\n\r\n')) socket.write(sent)
  }, config)

/** Returns the output of curl: all heads, and the body. */
async function curlHttp2(host: string): Promise<string> {
  const at = [`https://${host}:${edge.httpsPort}/`, '--resolve', `${host}:${edge.httpsPort}:127.0.0.1`]
  return (await run('curl', ['-ski', '--max-time', String(SOON.timeout / 1_000), '--http2', ...at])).stdout
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const HINTS =
  'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nLink: </b>\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n'

describe('the edge notices that a killed visitor has disconnected while its response', () => {
  test.for([
    ['is under way', 60_000, 'HTTP/1.1 200 OK\r\n\r\n', 200],
    ['has not begun', 300, '', 499],
  ] as const)('%s', async ([, halfClosedMs, head, status]) => {
    await using own = await startProxy({ contextFor: async () => context, limits: { sweepMs: 20, halfClosedMs } })
    const gone = Promise.withResolvers<undefined>()
    await using tunnel = await tunnelBefore(own, (_received, socket) => {
      socket.write(head)
      const timer = head === '' ? undefined : setInterval(() => socket.write('data: x\n\n'), 20)
      socket.on('end', () => socket.destroy())
      // A reset without an end is possible, when the edge leaves data unread.
      socket.on('close', () => {
        clearInterval(timer)
        gone.resolve(undefined)
      })
    })
    const target = [`https://${tunnel.host}:${own.httpsPort}/`, '--resolve', `${tunnel.host}:${own.httpsPort}:127.0.0.1`]
    const visitor = execFile('curl', ['-skN', '--http2', ...target], () => undefined)
    await vi.waitUntil(() => tunnel.received.length === 1, SOON)
    visitor.kill('SIGKILL')
    await gone.promise
    await vi.waitUntil(() => own.records.length === 1, SOON)
    expect(own.records).toMatchObject([{ status, reason: 'visitor_gone', protocol: 'h2' }])
    const noneIsLeft = async () =>
      (await own.registry.getSingleMetricAsString('mooring_edge_visitor_connections')).includes('"h2"} 0')
    await vi.waitUntil(noneIsLeft, SOON)
  })
})

describe('an interim response', () => {
  test('103 arrives with its end-to-end fields', async () => {
    await using tunnel = await saying(`${HINTS}\r\n${OK}`)
    const { interim, status, body } = await tunnel.visitor.ask()
    expect(interim).toEqual([[':status', '103', 'link', '</a>; rel=preload', 'link', '</b>']])
    expect([status, body]).toEqual([200, 'ok'])
  })

  test('103 gets the tunnel’s header modifications', async () => {
    const liveHeaderModifications = [
      { name: 'Link', value: '', type: 'response' as const },
      { name: 'X-Set', value: 'mine', type: 'response' as const },
    ]
    await using tunnel = await saying(`${HINTS}x-set: theirs\r\n\r\n${OK}`, { liveHeaderModifications })
    expect((await tunnel.visitor.ask()).interim).toEqual([[':status', '103', 'x-set', 'mine']])
  })

  test('103 and 100 arrive at curl before the final response', async () => {
    await using tunnel = await saying(`${HINTS}\r\nHTTP/1.1 100 Continue\r\n\r\n${OK}`)
    expect(await curlHttp2(tunnel.host)).toMatch(
      /^HTTP\/2 103 \r\nlink: <\/a>; rel=preload\r\nlink: <\/b>\r\n\r\nHTTP\/2 100 \r\n\r\nHTTP\/2 200 [^]*ok$/,
    )
  })

  test('100 arrives at a visitor that waits for it with its body', async () => {
    await using tunnel = await before((received, socket) => {
      if (received.endsWith('\r\n\r\n')) socket.write('HTTP/1.1 100 Continue\r\n\r\n')
      if (received.endsWith('hello')) socket.write(OK)
    })
    const fields = [':method', 'POST', 'expect', '100-continue', 'content-length', '5']
    const { interim, status } = await tunnel.visitor.ask(fields, { onContinue: 'hello' })
    expect([interim, status]).toEqual([[[':status', '100']], 200])
    expect(tunnel.received[0]).toMatch(/\r\nExpect: 100-continue\r\n\r\nhello$/)
  })
})

describe('205', () => {
  const RESET = 'HTTP/1.1 205 Reset Content\r\nETag: "a"\r\n'

  test.each([
    { does: 'a length', sent: `${RESET}Content-Length: 5\r\n\r\nhello` },
    { does: 'a length of nothing', sent: `${RESET}Content-Length: 0\r\n\r\n` },
    { does: 'chunks', sent: `${RESET}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n` },
  ])('with $does arrives without a body, and its upstream connection serves the next request', async ({ sent }) => {
    await using tunnel = await saying(sent)
    for (const times of [1, 2]) {
      const answer = await tunnel.visitor.ask()
      expect([answer.status, answer.body, answer.trailers, answer.code], `time ${times}`).toEqual([205, '', [], 0])
      expect(answer.fields).toContain('etag')
      if (!sent.includes('Length: 0')) expect(answer.fields).not.toContain('content-length')
    }
    expect(tunnel.received).toHaveLength(1)
    expect(edge.records.at(-1)).toMatchObject({ status: 205, bytesOut: 0, reason: null, origin: 'backend' })
  })

  test.each([
    { does: 'comes later', body: 'Content-Length: 10\r\n\r\nhello' },
    { does: 'never comes', body: 'Content-Length: 5\r\n\r\n' },
    { does: 'ends with its connection', body: '\r\nhello' },
  ])('with a body that $does arrives at once, and its upstream connection is not reused', async ({ body: sent }) => {
    await using tunnel = await saying(RESET + sent)
    for (const times of [1, 2]) {
      const { status, body, code } = await tunnel.visitor.ask()
      expect([status, body, code], `time ${times}`).toEqual([205, '', 0])
    }
    expect(tunnel.received).toHaveLength(2)
  })

  test('with an invalid body is 502', async () => {
    await using tunnel = await saying(`${RESET}Transfer-Encoding: chunked\r\n\r\nhello`)
    const { status, fields } = await tunnel.visitor.ask()
    expect([status, fields.includes('upstream_invalid')]).toEqual([502, true])
  })

  test('over HTTP/1.1 is forwarded unchanged', async () => {
    await using tunnel = await saying(`${RESET}Content-Length: 5\r\n\r\nhello`)
    const seen = await answered(edge.httpPort, `GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\nConnection: close\r\n\r\n`)
    expect(seen).toMatch(/^HTTP\/1.1 205 [^]*Content-Length: 5\r\n[^]*hello$/)
  })
})

describe('the Date of a response', () => {
  const dates = ({ fields }: { fields: readonly string[] }) => fields.filter((_value, index) => fields[index - 1] === 'date')
  const config = (value: string) => ({ liveHeaderModifications: [{ name: 'Date', value, type: 'response' as const }] })
  const THEIRS = 'Thu, 01 Jan 1970 00:00:00 GMT'
  const own = OK.replace('\r\n', `\r\nDate: ${THEIRS}\r\n`)

  test.each([
    { does: 'is the backend’s', sent: own, settings: {}, seen: [THEIRS] },
    { does: 'is the edge’s where the backend sends none', sent: OK, settings: {}, seen: [expect.stringMatching(/ GMT$/)] },
    { does: 'is removed where the tunnel removes it', sent: own, settings: config(''), seen: [] },
    { does: 'is not added where the tunnel removes it', sent: OK, settings: config(''), seen: [] },
    { does: 'is the one that the tunnel sets', sent: own, settings: config('mine'), seen: ['mine'] },
  ])('$does, over HTTP/1.1 as over HTTP/2', async ({ sent, settings, seen }) => {
    await using tunnel = await saying(sent, settings)
    expect(dates(await tunnel.visitor.ask())).toEqual(seen)
    const text = await answered(edge.httpPort, `GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\nConnection: close\r\n\r\n`)
    expect([...text.matchAll(/^Date: (.*)\r$/gm)].map(([, date]) => date)).toEqual(seen)
  })
})

describe('a response', () => {
  test('in chunks keeps its trailers', async () => {
    await using tunnel = await saying(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-T: 1\r\nx-t: 2\r\nDigest: x\r\n\r\n',
    )
    const { fields, body, trailers } = await tunnel.visitor.ask()
    expect([body, trailers]).toEqual(['hello', ['x-t', '1', 'x-t', '2', 'digest', 'x']])
    expect(fields).not.toContain('transfer-encoding')
  })

  test.each([
    {
      does: 'to HEAD',
      fields: [':method', 'HEAD'],
      head: '200 OK\r\nContent-Length: 7\r\nETag: "a"',
      length: ['7'],
      etag: ['"a"'],
    },
    {
      does: 'to HEAD in chunks',
      fields: [':method', 'HEAD'],
      head: '200 OK\r\nTransfer-Encoding: chunked',
      length: [],
      etag: [],
    },
    { does: '204', fields: [], head: '204 No Content\r\nETag: "a"', length: [], etag: ['"a"'] },
    { does: '304', fields: [], head: '304 Not Modified\r\nContent-Length: 7\r\nETag: "a"', length: ['7'], etag: ['"a"'] },
  ])('$does has no body, and its upstream connection serves the next request', async ({ fields, head, length, etag }) => {
    await using tunnel = await saying(`HTTP/1.1 ${head}\r\n\r\n`)
    for (const times of [1, 2]) {
      const answer = await tunnel.visitor.ask(fields)
      const values = (name: string) => answer.fields.filter((_value, index) => answer.fields[index - 1] === name)
      expect([answer.status, answer.body, answer.code], `time ${times}`).toEqual([Number(head.slice(0, 3)), '', 0])
      expect([values('content-length'), values('etag')]).toEqual([length, etag])
    }
    expect(tunnel.received).toHaveLength(1)
  })

  test.each([
    { does: 'a repeated field that HTTP allows once', fields: 'ETag: a\r\nETag: b\r\nAge: 1\r\nAge: 2\r\n' },
    { does: 'fields that HTTP/2 forbids', fields: 'HTTP2-Settings: a\r\nTE: gzip\r\nProxy-Connection: x\r\n' },
    { does: 'the names of JavaScript properties', fields: '__proto__: a\r\nconstructor: b\r\n' },
  ])('with $does is forwarded, also with them as trailers', async ({ fields }) => {
    const trailers = fields.replace(/^(HTTP2-Settings|TE|Proxy-Connection): .*\r\n/gm, '')
    await using tunnel = await saying(
      `HTTP/1.1 103 Early Hints\r\n${fields}\r\nHTTP/1.1 200 OK\r\n${fields}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n${trailers}\r\n`,
    )
    const { status, body, code } = await tunnel.visitor.ask()
    expect([status, body, code]).toEqual([200, 'ok', 0])
  })

  test('is forwarded when the tunnel sets fields that HTTP/2 forbids', async () => {
    const liveHeaderModifications = [
      { name: 'HTTP2-Settings', value: 'a', type: 'response' as const },
      { name: 'ETag', value: 'mine', type: 'response' as const },
    ]
    await using tunnel = await saying(`HTTP/1.1 200 OK\r\nETag: a\r\nETag: b\r\n${OK.slice(17)}`, { liveHeaderModifications })
    const { status, body, fields } = await tunnel.visitor.ask()
    expect([status, body]).toEqual([200, 'ok'])
    expect(fields.slice(fields.indexOf('etag')).slice(0, 2)).toEqual(['etag', 'mine'])
  })
})

test('the trailers of a request reach the backend', async () => {
  await using tunnel = await before((received, socket) => {
    if (/\r\n0\r\n[^]*\r\n\r\n$/.test(received)) socket.write(OK)
  })
  const { status } = await tunnel.visitor.ask([':method', 'POST'], {
    body: 'hello',
    trailers: { 'x-t': ['1', '2'], digest: 'x' },
  })
  expect(status).toBe(200)
  expect(tunnel.received[0]).toMatch(/\r\n\r\n5\r\nhello\r\n0\r\nx-t: 1\r\nx-t: 2\r\ndigest: x\r\n\r\n$/)
})

test.each(['host', 'authorization', 'x-forwarded-for'])(
  'a request with %s in its trailers is 400, and its backend does not get the end',
  async (name) => {
    await using tunnel = await before(() => undefined)
    const { status } = await tunnel.visitor.ask([':method', 'POST'], { body: 'hello', trailers: { [name]: '1' } })
    expect(status).toBe(400)
    expect(tunnel.received.join('')).not.toContain('\r\n0\r\n')
  },
)

test('more than 64 interim responses are 502, over HTTP/1.1 and HTTP/2', async () => {
  await using tunnel = await saying('HTTP/1.1 102 Processing\r\n\r\n'.repeat(100))
  const { interim, status, fields } = await tunnel.visitor.ask()
  expect([interim.length, status]).toEqual([64, 502])
  expect(fields).toContain('upstream_invalid')
  const seen = await answered(edge.httpPort, `GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\nConnection: close\r\n\r\n`)
  expect(seen.match(/ 102 /g)).toHaveLength(64)
  expect(seen).toMatch(/502 [^]*upstream_invalid/)
})

test('a download keeps the settings it began with, and the next request on its connection uses the new ones', async () => {
  const body = 'x'.repeat(1_000_000)
  const finish: (() => void)[] = []
  await using tunnel = await before((_received, socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nX-Own: 1\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 1_000)}`)
    finish.push(() => void socket.write(body.slice(1_000)))
  })
  const download = tunnel.visitor.ask()
  await vi.waitUntil(() => tunnel.received.length === 1, SOON)
  const hostname = tunnel.host.slice(0, 16)
  edge.serve(hostname, undefined, {
    ingressIPWhitelist: ['127.0.0.1'],
    liveHeaderModifications: [{ name: 'X-Own', value: '', type: 'response' }],
  })
  const next = tunnel.visitor.ask()
  await vi.waitUntil(() => finish.length === 2, SOON)
  for (const end of finish) end()
  const { status, fields, body: got, code } = await download
  expect([status, got.length, code]).toEqual([200, body.length, 0])
  expect(fields).toContain('x-own')
  expect((await next).fields).not.toContain('x-own')
})

test('the metric of connections drops when a visitor disconnects', async () => {
  await using tunnel = await saying(OK)
  await tunnel.visitor.ask()
  const connections = async () => /connections\{protocol="h2"\} (\d+)/.exec(await edge.registry.metrics())?.[1]
  await curlHttp2(tunnel.host)
  await tunnel.visitor[Symbol.asyncDispose]()
  await vi.waitFor(async () => expect(await connections()).toBe('0'), SOON)
})
