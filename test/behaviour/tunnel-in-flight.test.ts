import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openDeployment } from '../support/deployment/deployment.ts'
import { person, type Person } from '../support/edge/openssh.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { beginUpgrade, beginVisit, visit, type VisitOptions } from '../support/edge/visitor.ts'
import { closeOf } from '../support/edge/raw-http.ts'
import { LATER } from '../support/patience.ts'

/** Requests in flight while the settings of their tunnel change. */

const BODY = 'x'.repeat(4_000_000)
const BEGUN = 100_000

const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let sshUser: Person
let localPort: number
/** Responses that the test completes later, by request path. */
const held = new Map<string, ServerResponse>()

beforeAll(async () => {
  acme = await deployment.namespace()
  sshUser = cleanup.use(await person())
  const server = createServer((req, res) => {
    const { pathname } = new URL(req.url ?? '/', 'http://local')
    res.setHeader('X-Own', 'yes').setHeader('X-Seen', String(req.headers['x-added'] ?? 'nothing'))
    if (pathname === '/') return void res.end('ok')
    if (pathname.startsWith('/download')) res.setHeader('Content-Length', BODY.length).write(BODY.slice(0, BEGUN))
    held.set(pathname, res)
  }).listen(0, '127.0.0.1')
  server.on('upgrade', (_req, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n')
    socket.on('error', () => socket.destroy())
    socket.pipe(socket)
  })
  await once(server, 'listening')
  cleanup.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  localPort = (server.address() as AddressInfo).port
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

const SCHEMES = ['http', 'https'] as const

/** Opens on one tunnel, over HTTP and HTTPS each, a download and an unanswered request, and one upgraded connection over HTTPS. */
async function busyTunnel() {
  const { ca } = deployment.installation
  const tunnel = await acme.tunnel({ authorizedKeys: [sshUser.publicKey] })
  const client = cleanup.use(await sshUser.forward(tunnel, localPort))
  const at = (options?: VisitOptions) => visit(ca, tunnel, '/', options)
  await vi.waitFor(async () => expect((await at()).status, client.said()).toBe(200), LATER)
  held.clear()
  const downloads = await Promise.all(SCHEMES.map((scheme) => beginVisit(ca, tunnel, `/download/${scheme}`, { scheme })))
  const waiting = SCHEMES.map((scheme) => visit(ca, tunnel, `/wait/${scheme}`, { scheme }))
  const socket = await beginUpgrade(ca, tunnel, '/echo')
  cleanup.defer(() => void socket.destroy())
  await vi.waitFor(() => expect(held.size).toBe(4), LATER)
  const patch = (config: object) =>
    expectSuccess(acme.as('editor')('PATCH', `${acme.path}/tunnels/${tunnel.id}`, { body: { config } }))
  return { at, patch, downloads, waiting, socket }
}

test('a changed tunnel completes the requests in flight that it still allows and applies the new settings to the next request', async () => {
  const { at, patch, downloads, waiting, socket } = await busyTunnel()
  await patch({
    allowCorsPreflight: true,
    liveHeaderModifications: [
      { name: 'X-Own', value: '', type: 'response' },
      { name: 'X-Added', value: 'new', type: 'request' },
    ],
  })
  await vi.waitFor(async () => expect((await at()).headers['x-seen']).toBe('new'), LATER)
  expect((await at()).headers['x-own']).toBeUndefined()

  for (const [path, response] of held) response.end(path.startsWith('/download') ? BODY.slice(BEGUN) : 'at last')
  for (const download of downloads) {
    expect([download.statusCode, download.headers['x-own']]).toEqual([200, 'yes'])
    expect(await text(download)).toBe(BODY)
  }
  for (const { status, headers, body } of await Promise.all(waiting)) {
    expect([status, body, headers['x-own'], headers['x-seen']]).toEqual([200, 'at last', 'yes', 'nothing'])
  }
  const echoed = once(socket, 'data')
  socket.write('ping')
  expect(String(await echoed)).toBe('ping')
})

test('a changed tunnel ends only the requests in flight that it no longer allows', async () => {
  const { patch, downloads, waiting, socket } = await busyTunnel()
  const [plain, secure] = downloads
  const [plainWaiting, secureWaiting] = waiting
  const outcomes = [plain, secure].map((download) => (download ? text(download).catch(() => 'cut') : undefined))
  const closed = closeOf(socket)

  await patch({ httpsOnly: true })
  expect(await outcomes[0]).toBe('cut')
  expect((await plainWaiting)?.status).toBe(301)
  const echoed = once(socket, 'data')
  socket.write('ping')
  expect(String(await echoed)).toBe('ping')

  await patch({ ingressIPWhitelist: ['203.0.113.0/24'] })
  expect(await outcomes[1]).toBe('cut')
  expect((await secureWaiting)?.headers['mooring-error']).toBe('ip_denied')
  await closed
})
