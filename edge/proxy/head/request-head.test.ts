import { createServer, type IncomingMessage } from 'node:http'
import { duplexPair } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { STRIDE } from './fields.ts'
import { isRejection, readRequestHead } from './request-head.ts'

const HOST = 'Host: a.test\r\n'
const read = (line: string, fields = HOST) => readRequestHead(`${line}\r\n${fields}`)
const post = (fields: string) => read('POST / HTTP/1.1', HOST + fields)
const statusOf = (line: string, fields?: string) => {
  const head = read(line, fields)
  return isRejection(head) ? head.status : 200
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `x${index}`).join()

describe('a request line', () => {
  test.each([
    { does: 'is method, target and version', line: 'GET /a?b HTTP/1.1', status: 200 },
    { does: 'has one blank between them', line: 'GET  / HTTP/1.1', status: 400 },
    { does: 'has no tab between them', line: 'GET\t/ HTTP/1.1', status: 400 },
    { does: 'has no blank at its end', line: 'GET / HTTP/1.1 ', status: 400 },
    { does: 'has a target', line: 'GET HTTP/1.1', status: 400 },
    { does: 'has no fragment', line: 'GET /a#b HTTP/1.1', status: 400 },
    { does: 'may have bytes above ASCII', line: 'GET /\x80\xe4\xff HTTP/1.1', status: 200 },
    { does: 'has no control characters', line: 'GET /\x00 HTTP/1.1', status: 400 },
    { does: 'is of HTTP/1.0 too', line: 'GET / HTTP/1.0', status: 200 },
    { does: 'is not of HTTP/0.9', line: 'GET /', status: 400 },
    { does: 'is not of HTTP/2', line: 'PRI * HTTP/2.0', status: 400 },
    { does: 'is not of HTTP/1.2', line: 'GET / HTTP/1.2', status: 400 },
    { does: 'may hold * with OPTIONS', line: 'OPTIONS * HTTP/1.1', status: 200 },
    { does: 'holds no * otherwise', line: 'GET * HTTP/1.1', status: 400 },
    { does: 'may name its own host', line: 'GET http://a.test/x HTTP/1.1', status: 200 },
    { does: 'may name another host', line: 'GET http://b.test/x HTTP/1.1', status: 200 },
    { does: 'names no user', line: 'GET http://u@a.test/x HTTP/1.1', status: 400 },
    { does: 'is not of CONNECT', line: 'CONNECT a.test:80 HTTP/1.1', status: 400 },
    { does: 'has a path', line: 'GET a HTTP/1.1', status: 400 },
    { does: 'has a method of token characters', line: 'G(T / HTTP/1.1', status: 400 },
  ])('$does: $line is $status', ({ line, status }) => expect(statusOf(line)).toBe(status))

  test('in absolute form is forwarded in origin form', () => {
    expect(read('GET HTTP://A.test?x HTTP/1.1')).toMatchObject({ target: '/?x', text: 'GET /?x HTTP/1.1\r\nHost: A.test\r\n' })
  })

  test('of OPTIONS for a whole server is forwarded in asterisk form (RFC 9112, section 3.2.4)', () => {
    expect(read('OPTIONS http://a.test HTTP/1.1')).toMatchObject({ target: '*', text: `OPTIONS * HTTP/1.1\r\n${HOST}` })
    expect(read('OPTIONS http://a.test/ HTTP/1.1')).toMatchObject({ target: '/' })
  })

  test.each([
    { target: 'http://a.test:80/x', fields: 'Host: b.test\r\n', host: 'a.test:80' },
    { target: 'http://a.test/x', fields: 'Host: a.test:80\r\n', host: 'a.test' },
    { target: 'https://A.test:8443/x', fields: 'X: y\r\nHost: a.test\r\nX: z\r\n', host: 'A.test:8443' },
    { target: 'http://a.test/x', fields: 'Connection: Host\r\nhost: b.test:1\r\n', host: 'a.test' },
    { target: 'http://a.test/x', version: 'HTTP/1.0', fields: 'Host: b.test\r\n', host: 'a.test' },
    { target: 'http://a.test/x', version: 'HTTP/1.0', fields: 'X: y\r\n', host: 'a.test' },
  ])('$target decides the host, beside $fields (RFC 9112, section 3.2.2)', ({ target, version = 'HTTP/1.1', fields, host }) => {
    const head = read(`GET ${target} ${version}`, fields)
    const others = fields.replace(/host: .*\r\n/i, '')
    expect(head).toMatchObject({ host, hostname: 'a.test', target: '/x' })
    // The forwarded head names only that host.
    expect(head).toMatchObject({ text: `GET /x ${version}\r\nHost: ${host}\r\n${others}` })
  })

  test.each([
    { does: 'there is no Host', line: 'GET http://a.test/ HTTP/1.1', fields: 'X: y\r\n' },
    { does: 'there are two', line: 'GET http://a.test/ HTTP/1.1', fields: HOST + HOST },
    { does: 'there are two in HTTP/1.0', line: 'GET http://a.test/ HTTP/1.0', fields: HOST + HOST },
    { does: 'the Host is invalid', line: 'GET http://a.test/ HTTP/1.1', fields: 'Host: a b\r\n' },
    { does: 'the Host is invalid in HTTP/1.0', line: 'GET http://a.test/ HTTP/1.0', fields: 'Host: a b\r\n' },
    { does: 'it names no host', line: 'GET http:/// HTTP/1.1', fields: HOST },
    { does: 'it names port 0', line: 'GET http://a.test:0/ HTTP/1.1', fields: HOST },
    { does: 'its scheme is another', line: 'GET ftp://a.test/ HTTP/1.1', fields: HOST },
    { does: 'it is of POST to the whole server', line: 'POST * HTTP/1.1', fields: HOST },
  ])('in absolute form is 400 when $does', ({ line, fields }) => expect(statusOf(line, fields)).toBe(400))

  test('without a Host is 400 in HTTP/1.0 too, but for an absolute form', () => {
    expect(statusOf('GET / HTTP/1.0', 'X: y\r\n')).toBe(400)
  })
})

describe('fields', () => {
  test.each([
    { does: 'name one host', fields: '', status: 400 },
    { does: 'name no two hosts', fields: HOST + HOST, status: 400 },
    { does: 'name a host that can be one', fields: 'Host: a b\r\n', status: 400 },
    { does: 'name a host that is not empty', fields: 'Host:\r\n', status: 400 },
    { does: 'may name a port', fields: 'Host: a.test:65535\r\n', status: 200 },
    { does: 'name no port past the last', fields: 'Host: a.test:65536\r\n', status: 400 },
    { does: 'name no port 0', fields: 'Host: a.test:0\r\n', status: 400 },
    { does: 'have no blank before the colon', fields: `${HOST}A : b\r\n`, status: 400 },
    { does: 'have no blank in the name', fields: `${HOST}A b: c\r\n`, status: 400 },
    { does: 'have a name', fields: `${HOST}: c\r\n`, status: 400 },
    { does: 'are not continued', fields: `${HOST}A: b\r\n c\r\n`, status: 400 },
    { does: 'are not continued from the request line', fields: ` A: b\r\n${HOST}`, status: 400 },
    { does: 'do not end with a bare LF', fields: `A: b\n${HOST}`, status: 400 },
    { does: 'hold no bare CR', fields: `A: b\rc\r\n${HOST}`, status: 400 },
    { does: 'hold no NUL', fields: `A: b\x00c\r\n${HOST}`, status: 400 },
    { does: 'may hold bytes past ASCII', fields: `A: \xe4\r\n${HOST}`, status: 200 },
    { does: 'are a hundred at most', fields: HOST + 'a: b\r\n'.repeat(99), status: 200 },
    { does: 'are no more than a hundred', fields: HOST + 'a: b\r\n'.repeat(100), status: 431 },
    {
      does: 'name 32 more in Connection',
      fields: `${HOST}Connection: ${names(20)}\r\nConnection: ${names(12)}\r\n`,
      status: 200,
    },
    {
      does: 'name no more than 32 there',
      fields: `${HOST}Connection: ${names(20)}\r\nConnection: ${names(13)}\r\n`,
      status: 400,
    },
    { does: 'do not hide names behind empty ones', fields: `${HOST}Connection: ${','.repeat(64)}close\r\n`, status: 400 },
    { does: 'expect 100-continue', fields: `${HOST}Expect: 100-Continue\r\n`, status: 200 },
    { does: 'expect nothing else', fields: `${HOST}Expect: tea\r\n`, status: 417 },
  ])('$does', ({ fields, status }) => expect(statusOf('GET / HTTP/1.1', fields)).toBe(status))
})

test.each([
  { host: 'A.Test.', hostname: 'a.test' },
  { host: 'a.test.:8080', hostname: 'a.test' },
  { host: 'a.test..', hostname: 'a.test.' },
  { host: 'a.test:8080', hostname: 'a.test' },
  { host: '[::1]:80', hostname: '[::1]' },
])('the Host $host is $hostname, and is forwarded unchanged', ({ host, hostname }) => {
  expect(read('GET / HTTP/1.1', `Host: ${host}\r\n`)).toMatchObject({ host, hostname })
})

test('a method has at most 32 characters', () => {
  expect([32, 33, 30_000].map((length) => statusOf(`${'M'.repeat(length)} / HTTP/1.1`, HOST))).toEqual([200, 400, 400])
})

describe('framing', () => {
  test.each([
    { fields: 'Content-Length: 5\r\n', length: 5, chunked: false },
    { fields: 'Content-Length: 005\r\n', length: 5, chunked: false },
    { fields: 'Transfer-Encoding:\tChunked \r\n', length: undefined, chunked: true },
    { fields: '', length: undefined, chunked: false },
  ])('of $fields', ({ fields, length, chunked }) => expect(post(fields)).toMatchObject({ framing: { length, chunked } }))

  test.each([
    'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n',
    'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n',
    'Content-Length: 5\r\nContent-Length: 5\r\n',
    'Content-Length: 5\r\nContent-Length: 6\r\n',
    'Content-Length: 5, 5\r\n',
    'Content-Length: +5\r\n',
    'Content-Length: -1\r\n',
    'Content-Length: 0x5\r\n',
    'Content-Length: 5 \t5\r\n',
    'Content-Length: 9999999999999999\r\n',
    'Content-Length:\r\n',
    'Transfer-Encoding: chunked, chunked\r\n',
    'Transfer-Encoding:\r\n',
    'Transfer-Encoding: ,\r\n',
    'Transfer-Encoding: chunked,\r\n',
    'Content-Length: 5\r\nTransfer-Encoding: gzip\r\n',
    'Transfer-Encoding: gzip, chunked\r\nContent-Length: 5\r\n',
    'Transfer-Encoding: "chunked"\r\n',
    'Transfer-Encoding: chunked;a=b\r\n',
    'Transfer-Encoding:\x0bchunked\r\n',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n',
    'Transfer-Encoding\r\n : chunked\r\n',
    'Transfer-Encoding: \r\n chunked\r\n',
    'X: y\nTransfer-Encoding: chunked\r\n',
  ])('that can be read in two ways is refused: %j', (fields) => expect(post(fields)).toMatchObject({ status: 400 }))

  test.each([
    'identity',
    'gzip',
    'gzip, chunked',
    'gzip;level=1, chunked',
    'chunked, identity',
    'xchunked',
    'chunked\r\nTransfer-Encoding: x',
  ])('with the transfer coding %j is 501 (RFC 9112, section 6.1)', (value) => {
    expect(post(`Transfer-Encoding: ${value}\r\n`)).toMatchObject({ status: 501, reason: 'unknown_transfer_coding' })
  })

  test('is not chunked in HTTP/1.0', () => {
    expect(statusOf('POST / HTTP/1.0', `${HOST}Transfer-Encoding: chunked\r\n`)).toBe(400)
  })
})

test.each([
  { line: 'HTTP/1.1', connection: '', keeps: true },
  { line: 'HTTP/1.1', connection: 'Connection: close\r\n', keeps: false },
  { line: 'HTTP/1.1', connection: 'Connection: x\r\nConnection: Close\r\n', keeps: false },
  { line: 'HTTP/1.0', connection: '', keeps: false },
  { line: 'HTTP/1.0', connection: 'Connection: Keep-Alive\r\n', keeps: true },
])('$line with "$connection" keeps the connection: $keeps', ({ line, connection, keeps }) => {
  expect(read(`GET / ${line}`, HOST + connection)).toMatchObject({ keepAlive: keeps })
})

test.each([
  { upgrade: 'websocket', asked: 'websocket' },
  { upgrade: 'foo/2, bar', asked: 'foo/2, bar' },
  { upgrade: 'h2c', asked: undefined },
  { upgrade: 'websocket, h2', asked: undefined },
  { upgrade: '"h2c"', asked: undefined },
  { upgrade: 'a/b/c', asked: undefined },
  { upgrade: 'a b', asked: undefined },
])('an upgrade to $upgrade is forwarded as $asked', ({ upgrade, asked }) => {
  expect(read('GET / HTTP/1.1', `${HOST}Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n`)).toMatchObject({ upgrade: asked })
})

/** Request that Node's own server reads from the bytes; undefined: it rejects them. */
async function nodeReads(text: string): Promise<{ method: string; url: string; fields: string[] } | undefined> {
  const [ours, theirs] = duplexPair()
  const server = createServer()
  try {
    return await new Promise((resolve) => {
      const seen = ({ method = '', url = '', rawHeaders }: IncomingMessage) => resolve({ method, url, fields: rawHeaders })
      server.on('request', seen)
      server.on('upgrade', seen)
      server.on('checkContinue', seen)
      server.on('checkExpectation', seen)
      server.on('clientError', () => resolve(undefined))
      // Node's server answers some requests without an event.
      ours.on('data', () => resolve(undefined))
      server.emit('connection', theirs)
      ours.write(text, 'latin1')
    })
  } finally {
    ours.destroy()
    theirs.destroy()
    server.close()
  }
}

test('Node’s parser reads an accepted head alike', async () => {
  const piece = fc.constantFrom(
    ...[
      'Host: a.test',
      'A: b',
      'Content-Length: 3',
      'content-length:3',
      'Transfer-Encoding: chunked',
      'Connection: close',
      'Expect: 100-continue',
      'B:',
    ],
    ...[
      '\r\n',
      '\r\n',
      '\r\n',
      '\r\n',
      '\r\n',
      '\n',
      '\r',
      ' ',
      '\t',
      ':',
      '\x00',
      '\x7f',
      '\xff',
      ',',
      ';',
      'chunked',
      '"',
      '_',
    ],
  )
  const line = fc.constantFrom(
    'GET / HTTP/1.1',
    'POST /x?y=z HTTP/1.1',
    'OPTIONS * HTTP/1.1',
    'GET / HTTP/1.0',
    'GET /"{}|\\^` HTTP/1.1',
  )
  let taken = 0
  await fc.assert(
    fc.asyncProperty(line, fc.array(piece, { maxLength: 10 }), async (first, pieces) => {
      const text = `${first}\r\nHost: b.test\r\n${pieces.filter((part) => part !== 'Host: a.test').join('')}\r\n`
      if (text.includes('\r\n\r\n')) return
      const head = readRequestHead(text)
      if (isRejection(head)) return
      taken++
      const fields: string[] = []
      for (let field = 0; field < head.at.length; field += STRIDE) {
        fields.push(head.text.slice(head.at[field], head.at[field + 1]), head.text.slice(head.at[field + 2], head.at[field + 3]))
      }
      expect(await nodeReads(`${text}\r\n`)).toEqual({ method: head.method, url: head.target, fields })
    }),
    { numRuns: 2000 },
  )
  expect(taken).toBeGreaterThan(50)
})

test('random bytes never make it throw', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      readRequestHead(text)
      readRequestHead(`GET / HTTP/1.1\r\n${HOST}${text}\r\n`)
    }),
  )
})
