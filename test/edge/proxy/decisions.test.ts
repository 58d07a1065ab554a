import { http2Session } from '../../support/edge/http2.ts'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http2'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { curl as visit, type Transport, TRANSPORTS } from '../../support/edge/visitor.ts'
import { DOMAIN, startProxy, selfSigned } from '../../support/edge/proxy-fixture.ts'
import { answered, rawBackend } from '../../support/edge/raw-http.ts'
import { SOON } from '../../support/patience.ts'

const names = {
  web: '0000000000000001',
  denied: '0000000000000002',
  secure: '0000000000000003',
  cors: '0000000000000004',
  offline: '0000000000000005',
}
const dead = '0000000000000006'

const UPLOAD_BYTES = 5_000_000
const folder = await mkdtemp(join(tmpdir(), 'proxy-'))
const upload = join(folder, 'upload')
await writeFile(upload, Buffer.alloc(UPLOAD_BYTES, 'x'))
const context = selfSigned(DOMAIN)
const edge = await startProxy({
  contextFor: async () => context,
  limits: { holdMs: 50, upstreamMs: 5_000, sweepMs: 20 },
  challenge: (host, token) => (token === 'known' ? `${token} of ${host}` : undefined),
})
const backend = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const { method, url, headers } = request
    response.setHeader('X-Backend', '1')
    response.end(JSON.stringify({ method, url, headers, trailers: request.trailers, bytes: Buffer.concat(chunks).length }))
  })
}).listen(0, '127.0.0.1')
await vi.waitUntil(() => backend.listening, SOON)
const { port } = backend.address() as AddressInfo
edge.serve(names.web, port)
edge.serve(names.denied, port, { ingressIPWhitelist: ['203.0.113.0/24'] })
edge.serve(names.secure, port, { httpsOnly: true })
edge.serve(names.cors, port, { allowCorsPreflight: true })
edge.serve(names.offline, undefined)
// A port that refuses connections: its listener has closed.
const closed = await rawBackend(() => undefined)
edge.serve(dead, closed.port)
await closed[Symbol.asyncDispose]()

afterAll(async () => {
  await edge.proxy.close()
  await rm(folder, { recursive: true })
  backend.close()
  backend.closeAllConnections()
  expect(edge.failures).toEqual([])
})

/** Sends a request with curl. */
const curl = (transport: Transport, hostname: string, args: readonly string[] = [], path = '/') =>
  visit(edge, { transport, host: `${hostname}.${DOMAIN}`, path, args })

const preflight = [
  '-X',
  'OPTIONS',
  '-H',
  'Origin: https://a.example',
  '-H',
  'Access-Control-Request-Method: PUT',
  '-H',
  'Access-Control-Request-Headers: x-a',
]

describe.each(TRANSPORTS)('over %s', (transport) => {
  test.each([
    { does: 'a request to a served tunnel is 200', hostname: names.web, status: 200, reason: undefined },
    { does: 'an unknown host is 404', hostname: 'ffffffffffffffff', status: 404, reason: 'unknown_host' },
    { does: 'an address outside the ingress list is 403', hostname: names.denied, status: 403, reason: 'ip_denied' },
    { does: 'a tunnel without a client is 503', hostname: names.offline, status: 503, reason: 'tunnel_offline' },
    { does: 'a target that refuses connections is 502', hostname: dead, status: 502, reason: 'upstream_refused' },
    {
      does: 'an unknown ACME challenge is for the backend, as any other request',
      hostname: names.denied,
      path: '/.well-known/acme-challenge/x',
      status: 403,
      reason: 'ip_denied',
    },
    {
      does: 'an unknown ACME challenge reaches the backend',
      hostname: names.web,
      path: '/.well-known/acme-challenge/x',
      status: 200,
      reason: undefined,
    },
    {
      does: 'a known ACME challenge is 200',
      hostname: names.denied,
      path: '/.well-known/acme-challenge/known',
      status: 200,
      reason: undefined,
    },
    { does: 'OPTIONS reaches the backend', hostname: names.web, args: ['-X', 'OPTIONS'], status: 200, reason: undefined },
    {
      does: 'a preflight of a tunnel with allowCorsPreflight is 204',
      hostname: names.cors,
      args: preflight,
      status: 204,
      reason: undefined,
    },
  ])('$does', async ({ hostname, status, reason, args, path }) => {
    const answer = await curl(transport, hostname, args, path)
    expect({ status: answer.status, reason: answer.header('mooring-error') }).toEqual({ status, reason })
  })

  test('httpsOnly redirects plain requests only', async () => {
    const answer = await curl(transport, names.secure, [], '/a?b=c')
    const location = `https://${names.secure}.${DOMAIN}/a?b=c`
    const wanted = transport === 'http' ? [301, location] : [200, undefined]
    expect([answer.status, answer.header('location')]).toEqual(wanted)
  })

  test('the edge allows what a preflight asks for, without credentials', async () => {
    const { header } = await curl(transport, names.cors, preflight)
    expect(header('access-control-allow-origin')).toBe('https://a.example')
    expect(header('access-control-allow-methods')).toBe('PUT')
    expect(header('access-control-allow-headers')).toBe('x-a')
    expect(header('access-control-allow-credentials')).toBeUndefined()
    expect(header('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('the edge replaces forwarding fields of the visitor with its own', async () => {
    const spoofed = [
      '-H',
      'X-Forwarded-For: 6.6.6.6',
      '-H',
      'X_Forwarded_For: 6.6.6.6',
      '-H',
      'Forwarded: for=6.6.6.6',
      '-H',
      'X-Request-Id: mine',
    ]
    const { body } = await curl(transport, names.web, spoofed)
    const { headers } = JSON.parse(body) as { headers: Record<string, string> }
    const scheme = transport === 'http' ? 'http' : 'https'
    expect(headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': scheme,
      'x-forwarded-port': scheme === 'http' ? '80' : '443',
    })
    expect(headers['x-forwarded-host']).toBe(headers.host)
    expect(headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
    expect(headers).not.toHaveProperty('forwarded')
    expect(headers).not.toHaveProperty('x_forwarded_for')
  })

  test.each([
    { does: 'with a length', args: ['--data-binary', `@${upload}`] },
    { does: 'in chunks', args: ['-T', upload, '-H', 'Transfer-Encoding: chunked'] },
  ])('an upload $does arrives complete', async ({ args }) => {
    const { body } = await curl(transport, names.web, [...args, '-X', 'POST', '-H', 'Expect:'])
    const { bytes } = JSON.parse(body) as { bytes: number }
    expect(bytes).toBe(UPLOAD_BYTES)
    await vi.waitFor(() => expect(edge.records.at(-1)).toMatchObject({ bytesIn: bytes, status: 200, origin: 'backend' }), SOON)
  })
})

describe('HTTPS', () => {
  test.each<Transport>(['https', 'h2'])('%s: a Host other than the SNI is 421', async (transport) => {
    const answer = await curl(transport, names.web, ['-H', `Host: ${names.secure}.${DOMAIN}`])
    expect([answer.status, answer.header('mooring-error')]).toEqual([421, 'misdirected'])
  })
})

test('the edge sends HTML errors to visitors that accept HTML, and JSON to others', async () => {
  const html = await curl('http', names.offline, ['-H', 'Accept: text/html,*/*'])
  expect([html.header('content-type'), html.header('retry-after')]).toEqual(['text/html; charset=utf-8', '5'])
  const json = await curl('http', names.offline)
  expect(JSON.parse(json.body)).toMatchObject({ error: { code: 'tunnel_offline' } })
})

test('metrics count requests without host names in labels', async () => {
  const text = await edge.registry.metrics()
  expect(text).toMatch(/mooring_edge_requests_total\{protocol="h2",status="2xx",origin="backend",reason=""\} \d+/)
  expect(text).not.toContain(DOMAIN)
})

describe('the journal records invalid requests that name their tunnel:', () => {
  const host = `${names.web}.${DOMAIN}`
  const plain = `Host: ${host}\r\n`
  test.each([
    { does: 'with CONNECT', text: `CONNECT / HTTP/1.1\r\n${plain}\r\n`, record: ['CONNECT', '/', 400, 'bad_request'] },
    {
      does: 'with a method that is too long',
      text: `${'M'.repeat(33)} /m?q HTTP/1.1\r\n${plain}\r\n`,
      record: ['M'.repeat(32), '/m', 400, 'bad_request'],
    },
    {
      does: 'with an unknown expectation',
      text: `GET /e HTTP/1.1\r\n${plain}Expect: more\r\n\r\n`,
      record: ['GET', '/e', 417, 'bad_expectation'],
    },
    {
      does: 'with two framings',
      text: `POST /f HTTP/1.1\r\n${plain}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
      record: ['POST', '/f', 400, 'bad_request'],
    },
    {
      does: 'with a bad chunk in its first packet',
      text: `POST /c HTTP/1.1\r\n${plain}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
      record: ['POST', '/c', 400, 'bad_request'],
    },
    {
      does: 'with a head that is too large',
      text: `GET /l HTTP/1.1\r\n${plain}X: ${'x'.repeat(70_000)}\r\n\r\n`,
      record: ['GET', '/l', 431, 'head_too_large'],
    },
  ])('$does', async ({ text, record: [method, path, status, reason] }) => {
    expect(await answered(edge.httpPort, text)).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*Mooring-Error: ${reason}`))
    const origin = { origin: 'edge', tunnel: `uid-${names.web}`, sourceIp: '127.0.0.1', protocol: 'http/1.1' }
    expect(edge.records.at(-1)).toMatchObject({ method, path, status, reason, ...origin })
  })

  test('over HTTP/2', async () => {
    const client = http2Session(edge.httpsPort, host)
    onTestFinished(() => client.destroy())
    const stream = client.request({ ':authority': host, ':path': '/h', expect: 'more' })
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    expect(headers).toMatchObject({ ':status': 417, 'mooring-error': 'bad_expectation' })
    expect(edge.records.at(-1)).toMatchObject({
      method: 'GET',
      path: '/h',
      status: 417,
      protocol: 'h2',
      tunnel: `uid-${names.web}`,
    })
  })

  test('but not requests with two hosts or without a host', async () => {
    const before = edge.records.length
    for (const fields of [`${plain}Host: other\r\n`, '']) {
      expect(await answered(edge.httpPort, `GET / HTTP/1.1\r\n${fields}\r\n`)).toContain('HTTP/1.1 400 ')
    }
    expect(edge.records).toHaveLength(before)
  })
})
