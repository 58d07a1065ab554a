import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openHome } from '../support/home.ts'
import { person, type Person } from '../support/stock-ssh.ts'
import { succeed, type Tenant } from '../support/tenant.ts'
import { beginVisit, visit, type VisitOptions } from '../support/visitor.ts'

/** Requests that are under way while the settings of their tunnel change. */

const SOON = { timeout: 20_000, interval: 50 }
const BODY = 'x'.repeat(4_000_000)
const BEGUN = 100_000

const home = openHome()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let someone: Person
let localPort: number
/** Answers that wait for the test, by the path that they are to. */
const held = new Map<string, ServerResponse>()

beforeAll(async () => {
  acme = await home.namespace()
  someone = cleanup.use(await person())
  const server = createServer((req, res) => {
    const { pathname } = new URL(req.url ?? '/', 'http://local')
    res.setHeader('X-Own', 'yes').setHeader('X-Seen', String(req.headers['x-added'] ?? 'nothing'))
    if (pathname === '/') return void res.end('ok')
    if (pathname.startsWith('/download')) res.setHeader('Content-Length', BODY.length).write(BODY.slice(0, BEGUN))
    held.set(pathname, res)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanup.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  localPort = (server.address() as AddressInfo).port
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await home[Symbol.asyncDispose]()
})

test('a change of a tunnel cuts no request that is under way, and the next one has the new settings', async () => {
  const { ca } = home.installation
  const tunnel = await acme.tunnel({ authorizedKeys: [someone.publicKey] })
  await using client = await someone.forward(tunnel, localPort)
  const at = (options?: VisitOptions) => visit(ca, tunnel, '/', options)
  await vi.waitFor(async () => expect((await at()).status, client.said()).toBe(200), SOON)
  const patch = (config: object) => succeed(acme.as('editor')('PATCH', `${acme.path}/tunnels/${tunnel.id}`, { body: { config } }))

  const schemes = ['http', 'https'] as const
  const downloads = await Promise.all(schemes.map((scheme) => beginVisit(ca, tunnel, `/download/${scheme}`, { scheme })))
  const waiting = schemes.map((scheme) => visit(ca, tunnel, `/wait/${scheme}`, { scheme }))
  await vi.waitFor(() => expect(held.size).toBe(4), SOON)

  await patch({
    httpsOnly: true,
    liveHeaderModifications: [
      { name: 'X-Own', value: '', type: 'response' },
      { name: 'X-Added', value: 'new', type: 'request' },
    ],
  })
  await vi.waitFor(async () => expect((await at({ scheme: 'http' })).status).toBe(301), SOON)
  const next = await at()
  expect([next.status, next.headers['x-own'], next.headers['x-seen']]).toEqual([200, undefined, 'new'])
  await patch({ ingressIPWhitelist: ['203.0.113.0/24'] })
  await vi.waitFor(async () => expect((await at()).status).toBe(403), SOON)

  for (const [path, response] of held) response.end(path.startsWith('/download') ? BODY.slice(BEGUN) : 'at last')
  for (const download of downloads) {
    expect([download.statusCode, download.headers['x-own']]).toEqual([200, 'yes'])
    expect(await text(download)).toBe(BODY)
  }
  for (const { status, headers, body } of await Promise.all(waiting)) {
    expect([status, body, headers['x-own'], headers['x-seen']]).toEqual([200, 'at last', 'yes', 'nothing'])
  }
  expect((await at()).headers['mooring-error']).toBe('ip_denied')
})
