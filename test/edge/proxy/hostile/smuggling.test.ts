import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { block, data, FRAME, headers, http2Visitor } from '../../../support/edge/http2.ts'
import { DOMAIN, startProxy, selfSigned } from '../../../support/edge/proxy-fixture.ts'
import { rawVisitor } from '../../../support/edge/raw-http.ts'
import { EVERY_ODD_BYTE, SMUGGLED, smugglingCorpus } from '../../../support/edge/smuggling-corpus.ts'
import { freshHostname } from '../../../support/edge/ssh-edge.ts'
import { SOON } from '../../../support/patience.ts'

const context = selfSigned(DOMAIN)
const edge = await startProxy({
  contextFor: async () => context,
  limits: { headMs: 400, keepAliveMs: 400, slowMs: 400, lingerIdleMs: 50, sweepMs: 20, upstreamMs: 1_000 },
})
const HOSTNAME = '00000000000000aa'
const HOST = `${HOSTNAME}.${DOMAIN}`

/** Requests that a parser reads: method, target and body of each. */
type Reading = readonly string[]

/** Returns the requests that Node's strict or careless parser reads. A rejected request is `refused`. */
async function readBy(kind: 'strict' | 'careless', bytes: string): Promise<Reading> {
  const [ours, theirs] = duplexPair()
  const read: string[] = []
  const pending: Promise<void>[] = []
  const server = createServer({ insecureHTTPParser: kind === 'careless', requireHostHeader: false })
  const take = (req: IncomingMessage, res: ServerResponse) => {
    const index = read.push('') - 1
    pending.push(
      text(req).then(
        (body) => void (read[index] = `${req.method ?? ''} ${req.url ?? ''} ${JSON.stringify(body)}`),
        () => void (read[index] = 'cut off'),
      ),
    )
    res.end()
  }
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, take)
  server.on('upgrade', (req: IncomingMessage, socket: Socket) => {
    read.push(`upgrade ${req.url ?? ''}`)
    socket.destroy()
  })
  server.on('clientError', (_error, socket) => {
    read.push('refused')
    socket.destroy()
  })
  const over = new Promise<void>((resolve) => theirs.once('close', () => resolve()))
  server.emit('connection', theirs)
  ours.resume()
  ours.end(bytes, 'latin1')
  await over
  await Promise.all(pending)
  return read
}

/** Starts a backend that records the bytes of each connection, and responds by a careless parser. */
async function startBackend() {
  const connections: Buffer[][] = []
  const http: Server = createServer({ insecureHTTPParser: true }, (req, res) => {
    req.resume()
    req.on('end', () => res.end(`answer to ${req.url ?? ''}`))
  })
  const tcp = createTcpServer((socket) => {
    const bytes: Buffer[] = []
    connections.push(bytes)
    socket.on('data', (chunk) => bytes.push(chunk))
    http.emit('connection', socket)
  })
  await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
  return {
    port: (tcp.address() as AddressInfo).port,
    take: () => connections.splice(0).map((parts) => Buffer.concat(parts).toString('latin1')),
    [Symbol.asyncDispose]: () => {
      http.closeAllConnections()
      return new Promise<void>((resolve) => tcp.close(() => resolve()))
    },
  }
}

const backend = await startBackend()
afterAll(async () => {
  await edge.proxy.close()
  await backend[Symbol.asyncDispose]()
  expect(edge.failures).toEqual([])
})

/** Returns the flaws of bytes that reached a backend: none when both parsers read the same requests, without a smuggled one. */
async function flawsOf(bytes: string): Promise<readonly string[]> {
  const [strict, careless] = await Promise.all([readBy('strict', bytes), readBy('careless', bytes)])
  const flaws: string[] = []
  if (strict.join() !== careless.join()) flaws.push(`read as ${strict.join()} and as ${careless.join()}`)
  if (strict.includes('refused')) flaws.push('a strict reader refuses it')
  if (careless.some((request) => /^[A-Z]+ \/smuggled /.test(request))) flaws.push('it was smuggled')
  return flaws.map((flaw) => `${flaw}: ${JSON.stringify(bytes)}`)
}

/** Sends an attack and a second request to a new tunnel. Resolves with the statuses, and the bytes that reached the backend. */
async function attack(bytes: string): Promise<{ readonly statuses: readonly string[]; readonly forwarded: readonly string[] }> {
  const { hostname } = edge.serve(freshHostname(), backend.port)
  const own = (text: string) => text.replaceAll(HOSTNAME, hostname)
  const visitor = rawVisitor(edge.httpPort, own(bytes))
  visitor.socket.write(own(`GET /after HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`))
  const statuses = [...(await visitor.over).matchAll(/^HTTP\/1\.1 ([2-5]\d\d) /gm)].map(([, status = '']) => status)
  return { statuses, forwarded: backend.take() }
}

describe('no smuggled request reaches a backend through flaws of', () => {
  test.each(Object.entries(smugglingCorpus(HOST)))('%s', { retry: 0 }, async (_family, attacks) => {
    const found: string[] = []
    let forwarded = 0
    for (const { name, bytes } of attacks) {
      const seen = await attack(bytes)
      forwarded += seen.forwarded.length
      if (seen.statuses.length === 0) found.push(`${name}: not answered`)
      for (const sent of seen.forwarded) found.push(...(await flawsOf(sent)).map((flaw) => `${name}: ${flaw}`))
    }
    expect(found).toEqual([])
    // Harmless attacks are forwarded, which proves that the backend would have received the others.
    expect(forwarded).toBeGreaterThan(0)
  })
})

test('flawsOf finds a smuggled request', { retry: 0 }, async () => {
  const both = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${SMUGGLED.length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`
  expect((await flawsOf(both)).map((flaw) => flaw.split(': ')[0])).toContain('it was smuggled')
})

/** Returns HTTP/2 requests with the byte at each position of a field, followed by text that HTTP/1.1 would read as a field. */
const requestsWith = (host: string, byte: string): readonly (readonly (readonly [string, string])[])[] => {
  const of = (instead: Readonly<Record<string, string>>, ...more: readonly (readonly [string, string])[]) => {
    const pseudo = { ':method': 'POST', ':scheme': 'https', ':authority': host, ':path': '/first', ...instead }
    return [...Object.entries(pseudo), ...more]
  }
  const tail = `${byte}transfer-encoding: chunked`
  return [
    of({}, ['x', `y${tail}`]),
    of({}, [`x${tail}`, 'y']),
    of({}, ['transfer-encoding', `${byte}chunked`]),
    of({}, [`transfer-encoding${byte}`, 'chunked']),
    of({}, ['content-length', `${SMUGGLED.length}${byte}`]),
    of({ ':path': `/first${byte} HTTP/1.1\r\ntransfer-encoding: chunked` }),
    of({ ':path': `/first${byte}x` }),
    of({ ':method': `POST${byte}` }),
    of({ ':authority': `${host}${byte}` }),
    of({ ':scheme': `https${byte}` }),
  ]
}

test('no smuggled request reaches a backend through any byte in HTTP/2 fields', { retry: 0 }, async () => {
  // Handshakes and requests are complete here, so that no short deadline is needed.
  await using complete = await startProxy({ contextFor: async () => context })
  const found: string[] = []
  for (const code of EVERY_ODD_BYTE) {
    const { host } = complete.serve(freshHostname(), backend.port)
    using visitor = await http2Visitor(complete.httpsPort, host)
    const all = requestsWith(host, String.fromCharCode(code))
    const body = `0\r\n\r\n${SMUGGLED}`
    visitor.socket.write(
      Buffer.concat(
        all.flatMap((fields, index) => [headers(2 * index + 1, block(fields), 'goes on'), data(2 * index + 1, body)]),
      ),
    )
    const isOver = (stream: number) =>
      visitor.seen.some((frame) => frame.stream === stream && (frame.type === FRAME.headers || frame.type === FRAME.reset))
    await vi.waitUntil(() => visitor.socket.destroyed || all.every((_, index) => isOver(2 * index + 1)), {
      ...SOON,
      interval: 1,
    })
    for (const sent of backend.take()) found.push(...(await flawsOf(sent)).map((flaw) => `${code}: ${flaw}`))
  }
  expect(found).toEqual([])
  expect(complete.failures).toEqual([])
})
