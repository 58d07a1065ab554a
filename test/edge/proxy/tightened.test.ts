import { http2Session } from '../../support/edge/http2.ts'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Transport } from '../../support/edge/visitor.ts'
import { DOMAIN, startProxy, selfSigned, tunnelBefore } from '../../support/edge/proxy-fixture.ts'
import { SOON } from '../../support/patience.ts'

/** Requests under way when the settings of their tunnel change. */

const context = selfSigned(DOMAIN)
const edge = await startProxy({ contextFor: async () => context })
afterAll(async () => {
  await edge.proxy.close()
  expect(edge.failures).toEqual([])
})

const UPGRADE = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nbegun'
const STREAM = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nbegun'

/** Request under way. */
interface UnderWay {
  /** Returns all received bytes, as latin1. */
  readonly seen: () => string
  /** Resolves once its connection or HTTP/2 stream has ended. */
  readonly over: Promise<unknown>
}

/** Sends a request. Responses to `/upgrade` and `/stream` begin and do not end; other paths get no response. */
async function underWay(transport: Transport, host: string, path: string): Promise<UnderWay> {
  if (transport === 'h2') return streamUnderWay(host, path)
  const port = transport === 'http' ? edge.httpPort : edge.httpsPort
  const about = { host: '127.0.0.1', port, servername: host, rejectUnauthorized: false }
  const socket = transport === 'http' ? connectTcp(about) : connectTls(about)
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  const over = new Promise((resolve) => socket.on('error', resolve).on('close', resolve))
  const upgrade = path === '/upgrade' ? 'Connection: Upgrade\r\nUpgrade: echo\r\n' : ''
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${upgrade}\r\n`)
  return { seen: () => text, over }
}

async function streamUnderWay(host: string, path: string): Promise<UnderWay> {
  const session = http2Session(edge.httpsPort, host)
  onTestFinished(() => session.destroy())
  const stream = session.request({ ':path': path, ':authority': host })
  let text = ''
  stream.on('response', (fields) => (text += `HTTP/2 ${String(fields[':status'])} ${String(fields['mooring-error'])}\r\n`))
  stream.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  const over = new Promise((resolve) => stream.on('error', resolve).on('close', resolve))
  await once(stream, 'ready')
  return { seen: () => text, over }
}

/** Creates a tunnel with a backend for {@link underWay}. */
async function tunnel(config = {}) {
  const sockets = new Set<Socket>()
  const before = await tunnelBefore(
    edge,
    (received, socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
      // The edge ends the connection of a request that it has ended.
      socket.once('end', () => socket.end())
      if (received.startsWith('GET /upgrade ')) socket.write(UPGRADE)
      if (received.startsWith('GET /stream ')) socket.write(STREAM)
    },
    config,
  )
  onTestFinished(() => before[Symbol.asyncDispose]())
  return { ...before, sockets }
}

const CASES = (['http', 'https', 'h2'] as const).flatMap((transport) => [
  ...(transport === 'h2' ? [] : [{ transport, path: '/upgrade', status: 101 }]),
  { transport, path: '/stream', status: 200 },
])
const begun = (asked: UnderWay) => vi.waitUntil(() => asked.seen().includes('begun'), SOON)

describe.each(CASES)('over $transport, a request for $path', ({ transport, path, status }) => {
  test.each([
    { setting: 'ingressIPWhitelist', config: { ingressIPWhitelist: ['192.0.2.0/24'] }, reason: 'ip_denied' },
    { setting: 'httpsOnly', config: { httpsOnly: true }, reason: 'https_only' },
    { setting: 'the deleted tunnel', config: undefined, reason: 'unknown_host' },
  ])('ends when $setting no longer allows it', async ({ config, reason }) => {
    const { hostname, host, sockets } = await tunnel()
    const asked = await underWay(transport, host, path)
    await begun(asked)
    if (config) edge.serve(hostname, undefined, config)
    else edge.withdraw(hostname)
    if (reason === 'https_only' && transport !== 'http') return expectContinues(asked, sockets)
    await asked.over
    await vi.waitUntil(() => sockets.size === 0, SOON)
    const record = edge.records.findLast(({ tunnel: id }) => id === `uid-${hostname}`)
    expect(record).toMatchObject({ status, reason, origin: 'backend' })
  })

  test('continues under new settings that allow it', async () => {
    const { hostname, host, sockets } = await tunnel()
    const asked = await underWay(transport, host, path)
    await begun(asked)
    edge.serve(hostname, undefined, { ingressIPWhitelist: ['127.0.0.1'], allowCorsPreflight: true })
    await expectContinues(asked, sockets)
  })

  test('continues when another tunnel rejects its visitor', async () => {
    const { host, sockets } = await tunnel()
    const other = await tunnel()
    const [asked, ended] = [await underWay(transport, host, path), await underWay(transport, other.host, path)]
    await Promise.all([begun(asked), begun(ended)])
    edge.serve(other.hostname, undefined, { ingressIPWhitelist: ['192.0.2.0/24'] })
    await ended.over
    await expectContinues(asked, sockets)
  })
})

async function expectContinues(asked: UnderWay, sockets: ReadonlySet<Socket>): Promise<void> {
  for (const socket of sockets) socket.write(' more')
  await vi.waitUntil(() => asked.seen().includes(' more'), SOON)
}

describe.each(['http', 'https', 'h2'] as const)('over %s, a request that waits for its response', (transport) => {
  test.each([
    { setting: 'the new ingress list', config: { ingressIPWhitelist: ['192.0.2.0/24'] }, answer: /^HTTP\/\S+ 403 [^]*ip_denied/ },
    { setting: 'the deletion of the tunnel', config: undefined, answer: /^HTTP\/\S+ 404 [^]*unknown_host/ },
  ])('gets the error of $setting', async ({ config, answer }) => {
    const { hostname, host, received } = await tunnel()
    const asked = await underWay(transport, host, '/')
    await vi.waitUntil(() => received.length === 1, SOON)
    if (config) edge.serve(hostname, undefined, config)
    else edge.withdraw(hostname)
    await vi.waitUntil(() => answer.test(asked.seen()), SOON)
  })
})
