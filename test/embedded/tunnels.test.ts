import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Tunnel } from '../support/answers.ts'
import { type Mooring, startMooring } from '../support/mooring.ts'
import { person, type Person } from '../support/stock-ssh.ts'
import { visit } from '../support/visitor.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'
const SOON = { timeout: 10_000, interval: 50 }

const cleanup = new AsyncDisposableStack()
let mooring: Mooring
let someone: Person
let localPort: number

beforeAll(async () => {
  mooring = cleanup.use(await startMooring())
  someone = cleanup.use(await person(mooring))
  const local = createServer((req, res) => {
    res.setHeader('X-Secret', 'inside')
    res.end(JSON.stringify({ url: req.url, method: req.method, headers: req.headers }))
  }).listen(0, '127.0.0.1')
  cleanup.defer(() => void local.close())
  await once(local, 'listening')
  localPort = (local.address() as AddressInfo).port
})
afterAll(() => cleanup.disposeAsync())

async function makeTunnel(config: object = {}): Promise<Tunnel> {
  const body = { name: 'web', regionId: mooring.ready.regionId, config: { authorizedKeys: [someone.publicKey], ...config } }
  const answer = await mooring.call('POST', TUNNELS, { body })
  expect([answer.status, answer.body.msg]).toEqual([201, 'OK'])
  return answer.body.data.tunnel
}

const serves = (hostname: string) => vi.waitFor(async () => expect((await visit(mooring, hostname)).status).toBe(200), SOON)

test('one POST gives a hostname for life with a certificate, and the command that connects it', async () => {
  const tunnel = await makeTunnel()
  const { hostname } = tunnel
  expect(hostname).toMatch(/^[0-9a-f]{16}$/)
  expect(tunnel).toMatchObject({
    name: 'web',
    url: `https://${hostname}.tunnel.localhost`,
    directUrl: `https://${hostname}.tunnel.localhost:${mooring.ready.httpsPort}`,
    certificate: { status: 'valid', domain: `${hostname}.tunnel.localhost` },
    endpoint: { sshPort: mooring.ready.sshPort, domain: 'tunnel.localhost' },
    ...{ connected: false, sessions: 0, lastConnectedAt: null },
  })
  expect(tunnel.sshCommand).toContain(`-R ${hostname}:80:localhost:3000 ${hostname}@127.0.0.1`)
  expect((await mooring.call('GET', `${TUNNELS}/${hostname}`)).body.data.tunnel.id).toBe(tunnel.id)
})

test('a stock ssh client shows a local port at the public URL, and everything that happens is in the journal', async () => {
  const { id, hostname, url } = await makeTunnel()
  await using client = someone.forward(hostname, localPort)
  await serves(hostname)
  expect(client.said()).toContain(url)

  const { body } = await visit(mooring, hostname, '/a?secret=1', { headers: { 'X-Forwarded-For': '6.6.6.6' } })
  const seen = JSON.parse(body) as { url: string; headers: Record<string, string> }
  expect(seen.url).toBe('/a?secret=1')
  expect(seen.headers).toMatchObject({
    host: `${hostname}.tunnel.localhost`,
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-proto': 'https',
  })

  await vi.waitFor(async () => {
    const { requests } = (await mooring.call('GET', `${TUNNELS}/${id}/requests?limit=1`)).body.data
    expect(requests).toMatchObject([{ method: 'GET', path: '/a', status: 200, origin: 'backend', sourceIp: '127.0.0.1' }])
  }, SOON)
  const { tunnel } = (await mooring.call('GET', `${TUNNELS}/${id}`)).body.data
  expect(tunnel).toMatchObject({ connected: true, sessions: 1 })

  await client[Symbol.asyncDispose]()
  await vi.waitFor(async () => {
    const { connections } = (await mooring.call('GET', `${TUNNELS}/${id}/connections`)).body.data
    expect(connections.map(({ type, authMethod }) => ({ type, authMethod }))).toEqual([
      { type: 'disconnect', authMethod: 'key' },
      { type: 'connect', authMethod: 'key' },
    ])
  }, SOON)
  expect(await visit(mooring, hostname)).toMatchObject({
    status: 503,
    headers: { 'mooring-error': 'tunnel_offline', 'retry-after': '5' },
  })
})

describe('live config', () => {
  test('headers, CORS preflights, allow lists and httpsOnly are in force without a reconnect', async () => {
    const { hostname } = await makeTunnel()
    await using client = someone.forward(hostname, localPort)
    await serves(hostname)
    const patch = (config: object) => mooring.call('PATCH', `${TUNNELS}/${hostname}`, { body: { config } })

    const modifications = [
      { name: 'X-Added', value: 'yes', type: 'request' },
      { name: 'X-Secret', value: '', type: 'response' },
    ]
    expect((await patch({ liveHeaderModifications: modifications, allowCorsPreflight: true })).status).toBe(200)
    const changed = await visit(mooring, hostname)
    expect(JSON.parse(changed.body)).toMatchObject({ headers: { 'x-added': 'yes' } })
    expect(changed.headers['x-secret']).toBeUndefined()
    const preflight = await visit(mooring, hostname, '/', { method: 'OPTIONS', headers: { Origin: 'https://a.example' } })
    expect(preflight).toMatchObject({ status: 204, headers: { 'access-control-allow-origin': 'https://a.example' } })

    await patch({ ingressIPWhitelist: ['203.0.113.0/24'] })
    expect(await visit(mooring, hostname)).toMatchObject({ status: 403, headers: { 'mooring-error': 'ip_denied' } })
    await patch({ ingressIPWhitelist: [], httpsOnly: true })
    expect((await visit(mooring, hostname, '/b', { scheme: 'http' })).status).toBe(301)
    expect((await visit(mooring, hostname)).status).toBe(200)
    expect(client.said()).not.toContain('closed')
  })

  test('a client that may not connect any more is told so and closed', async () => {
    const { hostname } = await makeTunnel()
    await using client = someone.forward(hostname, localPort)
    await serves(hostname)
    await mooring.call('PATCH', `${TUNNELS}/${hostname}`, { body: { config: { sshIPWhitelist: ['203.0.113.7'] } } })
    expect(await client.exited).not.toBe(0)
  })
})

test('a temporary password opens the tunnel until it is revoked, which ends its sessions', async () => {
  const { hostname } = await makeTunnel({ authorizedKeys: [] })
  const { password } = (await mooring.call('POST', `${TUNNELS}/${hostname}/passwords`, { body: {} })).body.data
  await using client = someone.forward(hostname, localPort, password.password)
  await serves(hostname)
  await mooring.call('DELETE', `${TUNNELS}/${hostname}/passwords/${password.id}`)
  expect(await client.exited).not.toBe(0)
  await using again = someone.forward(hostname, localPort, password.password)
  expect(await again.exited).not.toBe(0)
})

test('a deleted tunnel is gone, with its hostname; the audit entries stay', async () => {
  const { id, hostname } = await makeTunnel()
  expect((await mooring.call('DELETE', `${TUNNELS}/${hostname}`)).status).toBe(200)
  expect((await mooring.call('GET', `${TUNNELS}/${id}`)).status).toBe(404)
  await expect(visit(mooring, hostname)).rejects.toThrow()
  expect(await visit(mooring, hostname, '/', { scheme: 'http' })).toMatchObject({
    status: 404,
    headers: { 'mooring-error': 'unknown_host' },
  })
  const { entries } = (await mooring.call('GET', `/v1/organizations/default/namespaces/default/audit?id=${id}`)).body.data
  expect(entries.map(({ action, actor }) => ({ action, actor: actor?.name }))).toEqual([
    { action: 'delete', actor: 'local:admin' },
    { action: 'create', actor: 'local:admin' },
  ])
})

test('after kill -9 and a new start every tunnel is there, and a session that was lost has its end', async () => {
  await using first = await startMooring()
  await using user = await person(first)
  const body = { name: 'kept', regionId: first.ready.regionId, config: { authorizedKeys: [user.publicKey] } }
  const { tunnel } = (await first.call('POST', TUNNELS, { body, headers: { 'Idempotency-Key': 'k' } })).body.data
  await using client = user.forward(tunnel.hostname, localPort)
  await vi.waitFor(async () => expect((await visit(first, tunnel.hostname)).status).toBe(200), SOON)
  first.process.kill('SIGKILL')
  await client.exited

  await using second = await startMooring({ dataDir: first.dataDir })
  await using same = await person({ ready: second.ready, dataDir: first.dataDir })
  const again = await second.call('POST', TUNNELS, { body, headers: { 'Idempotency-Key': 'k' } })
  expect(again.body.data.tunnel).toMatchObject({ id: tunnel.id, hostname: tunnel.hostname })
  const { connections } = (await second.call('GET', `${TUNNELS}/${tunnel.id}/connections`)).body.data
  expect(connections).toMatchObject([{ type: 'disconnect', reason: 'edge_lost' }, { type: 'connect' }])
  await second.call('PATCH', `${TUNNELS}/${tunnel.id}`, { body: { config: { authorizedKeys: [same.publicKey] } } })
  await using back = same.forward(tunnel.hostname, localPort)
  await vi.waitFor(async () => expect((await visit(second, tunnel.hostname)).status).toBe(200), SOON)
  expect(back.said()).toContain(tunnel.url)
})
