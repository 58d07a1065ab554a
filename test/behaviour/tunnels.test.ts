import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { codeOf, type Tunnel } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { type Seen, startLocalServer, visit, type VisitOptions } from '../support/edge/visitor.ts'
import { person, type Person } from '../support/edge/openssh.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { LATER } from '../support/patience.ts'

/** Tunnels with the stock ssh client, from creation to the answer for a visitor. */

const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let sshUser: Person
let localPort: number
beforeAll(async () => {
  acme = await deployment.namespace()
  sshUser = cleanup.use(await person())
  localPort = cleanup.use(await startLocalServer()).port
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

/** Calls as a different editor each time, because the rate limit for writes applies to each caller. */
const call: ReturnType<Tenant['as']> = (method, path, options) =>
  acme.as('editor')(method, `${acme.path}/tunnels${path}`, options)
const makeTunnel = (config: object = {}) => acme.tunnel({ authorizedKeys: [sshUser.publicKey], ...config })
const at = (tunnel: Tunnel, path?: string, options?: VisitOptions) => visit(deployment.installation.ca, tunnel, path, options)
const serves = (tunnel: Tunnel) => vi.waitFor(async () => expect((await at(tunnel)).status).toBe(200), LATER)

test('one POST returns a permanent hostname with a certificate, and the command that connects the tunnel', async () => {
  const tunnel = await makeTunnel()
  const { hostname, endpoint } = tunnel
  expect(hostname).toMatch(/^[0-9a-f]{16}$/)
  expect(tunnel).toMatchObject({
    ...{ name: 'web', url: `https://${hostname}.${endpoint.domain}` },
    directUrl: `https://${hostname}.${endpoint.domain}:${endpoint.httpsPort}`,
    certificate: { status: 'valid', domain: `${hostname}.${endpoint.domain}` },
    ...{ connected: false, sessions: 0, lastConnectedAt: null },
  })
  expect(tunnel.sshCommand).toContain(`-R ${hostname}:80:localhost:3000 ${hostname}@${endpoint.sshHost}`)
  expect((await call('GET', `/${hostname}`)).body.data.tunnel.id).toBe(tunnel.id)
})

test('a stock ssh client publishes a local port at the public URL, and the journal records connections and requests', async () => {
  const tunnel = await makeTunnel()
  const { id, hostname, url } = tunnel
  await using client = await sshUser.forward(tunnel, localPort)
  await serves(tunnel)
  expect(client.said()).toContain(url)

  const { body } = await at(tunnel, '/a?secret=1', { headers: { 'X-Forwarded-For': '6.6.6.6' } })
  const seen = JSON.parse(body) as Seen
  expect(seen.url).toBe('/a?secret=1')
  expect(seen.headers).toMatchObject({ host: `${hostname}.${tunnel.endpoint.domain}`, 'x-forwarded-proto': 'https' })

  await vi.waitFor(async () => {
    const { requests } = (await call('GET', `/${id}/requests?limit=1`)).body.data
    const sourceIp = seen.headers['x-forwarded-for']
    expect(requests).toMatchObject([{ method: 'GET', path: '/a', status: 200, origin: 'backend', sourceIp }])
  }, LATER)
  await vi.waitFor(async () => {
    expect((await call('GET', `/${id}`)).body.data.tunnel).toMatchObject({ connected: true, sessions: 1 })
  }, LATER)

  await client[Symbol.asyncDispose]()
  await vi.waitFor(async () => {
    const { connections } = (await call('GET', `/${id}/connections`)).body.data
    expect(connections.map(({ type, authMethod }) => ({ type, authMethod }))).toEqual([
      { type: 'disconnect', authMethod: 'key' },
      { type: 'connect', authMethod: 'key' },
    ])
  }, LATER)
  expect(await at(tunnel)).toMatchObject({ status: 503, headers: { 'mooring-error': 'tunnel_offline', 'retry-after': '5' } })
})

describe('live config', () => {
  test('headers, CORS preflights, allow lists and httpsOnly take effect without a reconnect', async () => {
    const tunnel = await makeTunnel()
    await using client = await sshUser.forward(tunnel, localPort)
    await serves(tunnel)
    const patch = (config: object) => expectSuccess(call('PATCH', `/${tunnel.hostname}`, { body: { config } }))
    const soon = (holds: () => Promise<void>) => vi.waitFor(holds, LATER)

    const modifications = [
      { name: 'X-Added', value: 'yes', type: 'request' },
      { name: 'X-Secret', value: '', type: 'response' },
    ]
    await patch({ liveHeaderModifications: modifications, allowCorsPreflight: true })
    await soon(async () => {
      const changed = await at(tunnel)
      expect(JSON.parse(changed.body)).toMatchObject({ headers: { 'x-added': 'yes' } })
      expect(changed.headers['x-secret']).toBeUndefined()
    })
    const preflight = await at(tunnel, '/', { method: 'OPTIONS', headers: { Origin: 'https://a.example' } })
    expect(preflight).toMatchObject({ status: 204, headers: { 'access-control-allow-origin': 'https://a.example' } })

    await patch({ ingressIPWhitelist: ['203.0.113.0/24'] })
    await soon(async () => expect(await at(tunnel)).toMatchObject({ status: 403, headers: { 'mooring-error': 'ip_denied' } }))
    await patch({ ingressIPWhitelist: [], httpsOnly: true })
    await soon(async () => {
      const redirect = await at(tunnel, '/b?c=d', { scheme: 'http' })
      expect(redirect.status).toBe(301)
      expect(redirect.headers.location).toMatch(new RegExp(`^https://${tunnel.hostname}\\.[^/]+/b\\?c=d$`))
    })
    expect((await at(tunnel)).status).toBe(200)
    expect(client.said()).not.toContain('closed')
  })

  test('a client that is not authorized any more gets a message and is disconnected', async () => {
    const tunnel = await makeTunnel()
    await using client = await sshUser.forward(tunnel, localPort)
    await serves(tunnel)
    await expectSuccess(call('PATCH', `/${tunnel.hostname}`, { body: { config: { sshIPWhitelist: ['203.0.113.7'] } } }))
    expect(await client.exited).not.toBe(0)
    expect(client.said()).toContain('Mooring: the tunnel no longer takes connections from your address.')
  })
})

test('a temporary password connects a client until it is revoked, which ends its sessions', async () => {
  const tunnel = await makeTunnel({ authorizedKeys: [] })
  const { password } = (await expectSuccess(call('POST', `/${tunnel.id}/passwords`, { body: {} }))).body.data
  await using client = await sshUser.forward(tunnel, localPort, password.password)
  await serves(tunnel)
  await expectSuccess(call('DELETE', `/${tunnel.id}/passwords/${password.id}`))
  expect(await client.exited).not.toBe(0)
  await using again = await sshUser.forward(tunnel, localPort, password.password)
  expect(await again.exited).not.toBe(0)
})

test('DELETE removes a tunnel with its hostname; its audit entries stay', async () => {
  const tunnel = await makeTunnel()
  expect(codeOf(await call('DELETE', `/${tunnel.hostname}`))).toBe('200 OK')
  expect(codeOf(await call('GET', `/${tunnel.id}`))).toBe('404 not_found')
  await vi.waitFor(async () => {
    for (const scheme of ['https', 'http'] as const)
      expect(await at(tunnel, '/', { scheme })).toMatchObject({ status: 404, headers: { 'mooring-error': 'unknown_host' } })
  }, LATER)
  await vi.waitFor(async () => {
    const { entries } = (await acme.as('viewer')('GET', `${acme.path}/audit?id=${tunnel.id}`)).body.data
    expect(entries.map(({ action }) => action)).toEqual(['delete', 'create'])
    for (const { actor } of entries) expect(actor?.name).toContain(':editor-')
  }, LATER)
})
