import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { codeOf, type Tunnel } from '../support/api/answers.ts'
import { browserHome, CHROMIUM, CHROMIUM_SETTINGS } from '../support/browser/chromium.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { person, type Running, running } from '../support/edge/openssh.ts'
import { visit } from '../support/edge/visitor.ts'
import { LATER, SOON } from '../support/patience.ts'

/**
 * A browser visits tunnels of OpenSSH clients. The page, `visited.html`, uses the features that a page may use, and reports the
 * results.
 */
const PAGE = new URL('../support/edge/visited.html', import.meta.url)
const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'
const MIB = 1024 * 1024

interface Tunnels {
  /** Tunnel of the page, which redirects plain HTTP to HTTPS. */
  readonly visited: Tunnel
  /** Tunnel whose preflights the edge answers. */
  readonly answering: Tunnel
  /** Tunnel whose preflights the server answers, with 404. */
  readonly silent: Tunnel
}

const cleanup = new AsyncDisposableStack()
const server = createServer((req, res) => {
  answer(req, res).catch(() => res.destroy())
}).on('upgrade', echoWebSocket)
const seen: Pick<IncomingMessage, 'method' | 'url' | 'headers'>[] = []
let tunnels: Tunnels
let query: string
let report: Readonly<Record<string, unknown>> | undefined

beforeAll(async () => {
  const mooring = cleanup.use(await startMooring())
  const user = cleanup.use(await person())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  cleanup.defer(() => new Promise((resolve) => server.close(() => resolve())))
  const { port } = server.address() as AddressInfo
  const ca = await readFile(mooring.ready.ca, 'utf8')

  async function shown(config: object): Promise<Tunnel> {
    const tunnel = await newTunnel(mooring, { authorizedKeys: [user.publicKey], ...config })
    const client = cleanup.use(await user.forward(tunnel, port))
    await vi.waitFor(async () => expect((await visit(ca, tunnel, '/numbers/1')).status, client.said()).toBe(200), SOON)
    return tunnel
  }
  tunnels = {
    visited: await shown({ httpsOnly: true }),
    answering: await shown({ allowCorsPreflight: true }),
    silent: await shown({}),
  }

  const [answering, silent] = [tunnels.answering.directUrl, tunnels.silent.directUrl]
  query = `/?${new URLSearchParams({ answering, silent }).toString()}`
  const { hostname, endpoint } = tunnels.visited
  const url = `http://${hostname}.${endpoint.domain}:${endpoint.httpPort}${query}`
  const browser = cleanup.use(await openBrowser(url, mooring.ready.ca))
  await vi.waitFor(() => expect(report, browser.said()).toBeDefined(), LATER)
})
afterAll(() => cleanup.disposeAsync())

async function newTunnel(mooring: Mooring, config: object): Promise<Tunnel> {
  const made = await mooring.call('POST', TUNNELS, { body: { name: 'web', regionId: mooring.ready.regionId, config } })
  expect(codeOf(made)).toBe('201 OK')
  return made.body.data.tunnel
}

/** Returns the requests that the server received for a path of a tunnel. */
const seenOf = (path: string, { directUrl }: Tunnel) =>
  seen.filter(({ url, headers }) => url === path && `https://${headers.host ?? ''}` === directUrl)

type Respond = (req: IncomingMessage, res: ServerResponse, rest: string) => unknown

const gates = new Map(['streamed', 'abandoned', 'events', 'uploading'].map((name) => [name, Promise.withResolvers<string>()]))

/** Handlers by method and first segment of the path. */
const responses: Readonly<Record<string, Respond>> = {
  async 'GET '(_req, res) {
    const wide = `wide=1; Domain=${tunnels.visited.endpoint.domain}; Path=/; Secure; HttpOnly`
    res.setHeader('Set-Cookie', ['__Host-own=1; Path=/; Secure; HttpOnly', wide])
    res.setHeader('Content-Type', 'text/html').end(await readFile(PAGE))
  },
  async 'POST report'(req, res) {
    report = JSON.parse(await text(req)) as Record<string, unknown>
    res.end()
  },
  'POST gates'(_req, res, gate) {
    gates.get(gate)?.resolve('opened')
    res.end()
  },
  'GET gates': async (_req, res, gate) => res.end(await gates.get(gate)?.promise),
  async 'GET streamed'(_req, res) {
    res.write('first')
    await gates.get('streamed')?.promise
    res.end('second')
  },
  'GET endless'(_req, res) {
    res.once('close', () => gates.get('abandoned')?.resolve('closed'))
    res.write('first')
  },
  async 'GET events'({ headers }, res) {
    const id = headers['last-event-id']
    res.setHeader('Content-Type', 'text/event-stream')
    if (id !== undefined) return res.write(`event: again\ndata: after ${id.toString()}\n\n`)
    res.write('retry: 1\nid: one\ndata: first\n\n')
    await gates.get('events')?.promise
    return res.end()
  },
  async 'POST upload'(req, res) {
    const { 'content-length': length, 'transfer-encoding': coding } = req.headers
    const hash = createHash('sha256')
    let bytes = 0
    for await (const chunk of req as AsyncIterable<Buffer>) {
      gates.get('uploading')?.resolve('begun')
      bytes += chunk.length
      hash.update(chunk)
    }
    res.end(JSON.stringify({ bytes, framing: length ?? coding, sha256: hash.digest('hex') }))
  },
  'GET numbers': (_req, res, number) => res.end(number),
  'GET cookies': ({ headers }, res) => res.end(headers.cookie),
  'GET neighbour': (_req, res) => res.end(),
  'PUT put': async (req, res) =>
    res
      .setHeader('Access-Control-Allow-Origin', req.headers.origin ?? '')
      .end(`${await text(req)} by ${req.headers['x-asked']?.toString() ?? ''}`),
}

async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { method = '', url = '', headers } = req
  seen.push({ method, url, headers })
  const [, first = '', rest = ''] = url.replace(/\?.*/, '').split('/')
  const respond = responses[`${method} ${first}`]
  if (respond) await respond(req, res, rest)
  else res.writeHead(404).end()
}

/** WebSocket server (RFC 6455). It sends the client's cookie and origin first, and then echoes every frame. */
function echoWebSocket({ headers }: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => socket.destroy())
  const { cookie, origin } = headers
  const accept = createHash('sha1')
    .update(`${headers['sec-websocket-key'] ?? ''}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64')
  const fields = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}`
  const welcome = frameOf(TEXT, Buffer.from(JSON.stringify({ cookie, origin })))
  socket.write(Buffer.concat([Buffer.from(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n\r\n`), welcome]))
  let received = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    for (let frame = firstFrame(received); frame; frame = firstFrame(received)) {
      socket.write(frameOf(frame.kind, frame.payload))
      received = received.subarray(frame.size)
      if (frame.kind === CLOSE) socket.end()
    }
  })
}

const [TEXT, CLOSE, MASKED, TWO_BYTES] = [0x81, 0x88, 0x80, 126]

function frameOf(kind: number, payload: Buffer): Buffer {
  const { length } = payload
  const head = length < TWO_BYTES ? [kind, length] : [kind, TWO_BYTES, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from(head), payload])
}

/** Returns the first masked frame of a browser, at most 64 KiB; undefined until it is complete. */
function firstFrame(received: Buffer): { kind: number; payload: Buffer; size: number } | undefined {
  if (received.length < 6) return undefined
  const kind = received.readUInt8(0)
  const short = received.readUInt8(1) - MASKED
  const maskAt = short === TWO_BYTES ? 4 : 2
  const size = maskAt + 4 + (short === TWO_BYTES ? received.readUInt16BE(2) : short)
  if (received.length < size) return undefined
  const payload = Buffer.from(received.subarray(maskAt + 4, size))
  return { kind, size, payload: payload.map((byte, index) => byte ^ received.readUInt8(maskAt + (index % 4))) as Buffer }
}

test('the edge redirects plain HTTP to the same page over HTTPS, at its own port', () => {
  expect(report?.address).toBe(`${tunnels.visited.directUrl}${query}`)
  const [request, ...more] = seenOf(query, tunnels.visited)
  expect(request?.headers['x-forwarded-proto']).toBe('https')
  expect(more).toEqual([])
})

test('the browser sends all requests except the WebSocket’s over HTTP/2, a hundred at once', () => {
  expect(report).toMatchObject({ protocols: ['h2'], atOnce: true })
  expect(report?.requests).toBeGreaterThan(100)
})

test('a response streams to the page, and the server sees its connection close when the page aborts it', () => {
  expect(report).toMatchObject({ streamed: ['first', 'second'], abandoned: 'closed' })
})

test('server-sent events arrive one by one, and continue after the connection ends', () => {
  expect(report?.events).toEqual(['first', 'after one'])
})

test('a WebSocket carries text and bytes in both directions, and its close code', () => {
  const asked = { origin: tunnels.visited.directUrl, cookie: expect.stringContaining('__Host-own=1') as string }
  expect(report?.webSocket).toEqual([asked, 'hello', true, { code: 4000, reason: 'enough', wasClean: true }])
})

test.each([
  ['with Content-Length', 'upload', String(4 * MIB)],
  ['as a stream of chunks', 'streamedUpload', 'chunked'],
])('an upload of 4 MiB arrives complete %s', (_does, name, framing) => {
  expect(report?.[name]).toEqual({ bytes: 4 * MIB, framing, intact: true })
})

test('a server’s cookie reaches its own tunnel only, even when the server sets it for the whole domain', () => {
  // The server's cookies are HttpOnly, so that the page cannot read them.
  expect(report?.cookies).toEqual(['from_page=1', expect.stringMatching(/^(?=.*__Host-own=1)(?=.*wide=1)(?=.*from_page=1)/)])
  expect(seenOf('/neighbour', tunnels.answering).map(({ headers }) => headers.cookie)).toEqual(['from_page=1'])
})

test('the edge answers preflights of a tunnel with allowCorsPreflight; the server answers those of other tunnels', () => {
  const methods = (tunnel: Tunnel) => seenOf('/put', tunnel).map(({ method }) => method)
  expect(report).toMatchObject({ preflight: 'put by 1', preflightUnanswered: expect.stringContaining('TypeError') as string })
  expect([methods(tunnels.answering), methods(tunnels.silent)]).toEqual([['PUT'], ['OPTIONS']])
})

/** Starts headless Chromium with an empty profile, and opens a page. Names below `localhost` resolve to this machine. */
async function openBrowser(url: string, ca: string): Promise<Running> {
  await using started = new AsyncDisposableStack()
  const { home } = started.use(await browserHome(ca))
  const settings = [...CHROMIUM_SETTINGS, `--user-data-dir=${join(home, 'profile')}`]
  const browser = started.use(running([CHROMIUM, ...settings, url], { HOME: home }))
  const ownership = started.move()
  return { ...browser, [Symbol.asyncDispose]: () => ownership.disposeAsync() }
}
