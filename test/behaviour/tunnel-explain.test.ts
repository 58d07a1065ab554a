import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { codeOf, fieldsOf, type Tunnel } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { type Seen, startLocalServer, visit, type VisitOptions } from '../support/edge/visitor.ts'
import { person, type Person } from '../support/edge/openssh.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { LATER } from '../support/patience.ts'

/** Compares the explained decision of the edge with the real one. */

const OTHERS = ['203.0.113.0/24']

const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let sshUser: Person
let localPort: number
/** Addresses of this machine as the edge sees them, of a visitor and of a client. */
let visitorIp: string
let clientIp: string

/** Calls as a different editor each time, because the rate limit for writes applies to each caller. */
const call: ReturnType<Tenant['as']> = (method, path, options) =>
  acme.as('editor')(method, `${acme.path}/tunnels${path}`, options)
const makeTunnel = (config: object = {}) => acme.tunnel({ authorizedKeys: [sshUser.publicKey], ...config })
const explain = async ({ id }: Tunnel, body: object) => (await expectSuccess(call('POST', `/${id}/explain`, { body }))).body.data
const at = (tunnel: Tunnel, path?: string, options?: VisitOptions) => visit(deployment.installation.ca, tunnel, path, options)

beforeAll(async () => {
  acme = await deployment.namespace()
  sshUser = cleanup.use(await person())
  localPort = cleanup.use(await startLocalServer()).port
  const tunnel = await makeTunnel()
  await using client = await sshUser.forward(tunnel, localPort)
  visitorIp = await vi.waitFor(async () => {
    const { headers } = JSON.parse((await at(tunnel)).body) as Seen
    return headers['x-forwarded-for'] ?? expect.fail('the backend got no X-Forwarded-For')
  }, LATER)
  clientIp = await vi.waitFor(async () => {
    const [connection] = (await call('GET', `/${tunnel.id}/connections?type=connect`)).body.data.connections
    return connection?.clientIp ?? expect.fail(`the client has not connected: ${client.said()}`)
  }, LATER)
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

interface RequestRow {
  readonly does: string
  readonly config?: () => object
  readonly isOnline?: true
  readonly asked?: { readonly scheme?: 'http' | 'https'; readonly method?: string; readonly path?: string }
  /** Check that rejects the request; absent when the backend answers. */
  readonly check?: string
  readonly status: number
  readonly reason?: string
}

const preflight = { method: 'OPTIONS' } as const
const plain = { scheme: 'http' } as const
const offline = { check: 'session', status: 503, reason: 'tunnel_offline' } as const
const denied = { check: 'ingress', status: 403, reason: 'ip_denied' } as const

describe('the edge answers a request as explained', () => {
  test.concurrent.each<RequestRow>([
    { does: 'a visitor of a tunnel without restrictions', isOnline: true, status: 200 },
    { does: 'a visitor in the ingress list', config: () => ({ ingressIPWhitelist: [visitorIp] }), isOnline: true, status: 200 },
    { does: 'a visitor outside the ingress list', config: () => ({ ingressIPWhitelist: OTHERS }), ...denied },
    {
      does: 'a visitor outside the ingress list, by plain HTTP where HTTPS is required',
      config: () => ({ ingressIPWhitelist: OTHERS, httpsOnly: true }),
      ...{ asked: plain, ...denied },
    },
    {
      does: 'plain HTTP where HTTPS is required',
      config: () => ({ httpsOnly: true }),
      ...{ asked: plain, check: 'https_only', status: 301, reason: 'https_only' },
    },
    { does: 'HTTPS where it is required', config: () => ({ httpsOnly: true }), isOnline: true, status: 200 },
    {
      does: 'a preflight that the edge answers',
      config: () => ({ allowCorsPreflight: true }),
      ...{ asked: preflight, check: 'cors_preflight', status: 204, reason: 'cors_preflight' },
    },
    { does: 'a preflight for the backend', isOnline: true, asked: preflight, status: 200 },
    {
      does: 'another method where the edge answers preflights',
      config: () => ({ allowCorsPreflight: true }),
      ...{ isOnline: true, asked: { method: 'POST' }, status: 200 },
    },
    { does: 'a tunnel without a client', ...offline },
    { does: 'a tunnel without a client, by plain HTTP', asked: plain, ...offline },
    {
      does: 'an unknown ACME challenge, from an address outside the ingress list',
      config: () => ({ ingressIPWhitelist: OTHERS }),
      asked: { path: '/.well-known/acme-challenge/nobody' },
      ...{ check: 'ingress', status: 403, reason: 'ip_denied' },
    },
  ])('$does', async ({ config, isOnline, asked = {}, check, status, reason }) => {
    const tunnel = await makeTunnel(config?.())
    await using client = isOnline ? await sshUser.forward(tunnel, localPort) : undefined
    const { path, ...options } = asked
    // The edge sends no Mooring-Error with its answer to a preflight: only the browser reads that answer.
    const shown = status === 204 ? undefined : reason
    await vi.waitFor(async () => {
      const answer = await at(tunnel, path, options)
      expect([answer.status, answer.headers['mooring-error']], client?.said()).toEqual([status, shown])
    }, LATER)
    await vi.waitFor(async () => {
      const { steps, answer } = await explain(tunnel, { sourceIp: visitorIp, ...asked })
      expect(answer).toEqual({ status: check === undefined ? null : status, reason: reason ?? null })
      expect(steps.filter(({ verdict }) => verdict === 'stop').map((step) => step.check)).toEqual(
        check === undefined ? [] : [check],
      )
      expect(steps.slice(0, -1).every(({ verdict }) => verdict === 'pass')).toBe(true)
    }, LATER)
  })
})

interface LoginRow {
  readonly does: string
  readonly config?: () => object
  readonly authMethod: 'key' | 'token'
  /** Whether the tunnel has a password. The client sends it, or else a password that was never issued. */
  readonly hasPassword?: true
  readonly reason?: string
}

describe('a method that the edge refuses', () => {
  const sourceIp = '203.0.113.7'
  test('CONNECT is explained as a bad request', async () => {
    expect(await explain(await makeTunnel(), { sourceIp, method: 'CONNECT' })).toEqual({
      steps: [{ check: 'parse', verdict: 'stop', detail: 'the request target is not valid' }],
      answer: { status: 400, reason: 'bad_request' },
    })
  })

  test('with more than 32 characters is rejected by explain, too', async () => {
    const { id } = await makeTunnel()
    const ask = (length: number) => call('POST', `/${id}/explain`, { body: { sourceIp, method: 'M'.repeat(length) } })
    expect(codeOf(await ask(32))).toBe('200 OK')
    const answer = await ask(33)
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', ['method']])
  })
})

describe('the edge decides a login as explained', () => {
  test.concurrent.each<LoginRow>([
    { does: 'a key', authMethod: 'key' },
    { does: 'a password', authMethod: 'token', hasPassword: true },
    { does: 'a client in the list of SSH sources', config: () => ({ sshIPWhitelist: [clientIp] }), authMethod: 'key' },
    {
      does: 'a client outside the list of SSH sources',
      config: () => ({ sshIPWhitelist: OTHERS }),
      authMethod: 'key',
      reason: 'ip_denied',
    },
    { does: 'a key where passwords are required', config: () => ({ authMode: 'token' }), authMethod: 'key', reason: 'auth_mode' },
    { does: 'a password where keys are required', config: () => ({ authMode: 'key' }), authMethod: 'token', reason: 'auth_mode' },
    {
      does: 'a key where the tunnel has none',
      config: () => ({ authorizedKeys: [] }),
      authMethod: 'key',
      reason: 'no_credential',
    },
    { does: 'a password where the tunnel has none', authMethod: 'token', reason: 'no_credential' },
  ])('$does', async ({ config, authMethod, hasPassword, reason }) => {
    const tunnel = await makeTunnel(config?.())
    const issued =
      hasPassword && (await expectSuccess(call('POST', `/${tunnel.id}/passwords`, { body: {} }))).body.data.password.password
    const { answer, steps } = await explain(tunnel, { ssh: { sourceIp: clientIp, authMethod } })
    expect(answer).toEqual({ status: null, reason: reason ?? null })
    expect(steps.at(-1)?.verdict).toBe(reason === undefined ? 'pass' : 'stop')

    const password = authMethod === 'token' ? (issued ?? `mt_${'0'.repeat(32)}`) : undefined
    await using client = await sshUser.forward(tunnel, localPort, password)
    if (reason !== undefined) expect(await client.exited).not.toBe(0)
    await vi.waitFor(async () => {
      const { connections } = (await call('GET', `/${tunnel.id}/connections?include=refused`)).body.data
      const [{ type, reason: why }] = [connections[0] ?? expect.fail(`the journal has no connection: ${client.said()}`)]
      expect([type, why]).toEqual(reason === undefined ? ['connect', null] : ['refused', reason])
    }, LATER)
  })
})

describe('an invalid explain request is rejected with the name of each invalid field', () => {
  let tunnel: Tunnel
  beforeAll(async () => {
    tunnel = await makeTunnel()
  })
  const sourceIp = '203.0.113.7'
  const ssh = { sourceIp, authMethod: 'key' }

  test.each<{ body: object; fields: readonly string[] }>([
    { body: {}, fields: ['sourceIp'] },
    { body: { sourceIp: 'localhost' }, fields: ['sourceIp'] },
    { body: { sourceIp: '203.0.113.0/24' }, fields: ['sourceIp'] },
    { body: { sourceIp: null }, fields: ['sourceIp'] },
    { body: { sourceIp, scheme: 'ftp' }, fields: ['scheme'] },
    { body: { sourceIp, method: '' }, fields: ['method'] },
    { body: { sourceIp, method: 'GET /' }, fields: ['method'] },
    { body: { sourceIp, path: 'a' }, fields: ['path'] },
    { body: { sourceIp, path: '/a b' }, fields: ['path'] },
    { body: { sourceIp, path: `/${'a'.repeat(2_048)}` }, fields: ['path'] },
    { body: { sourceIp, host: 'a' }, fields: ['host'] },
    { body: { scheme: 1, method: 1, path: 1 }, fields: ['method', 'path', 'scheme'] },
    { body: { sourceIp, ssh }, fields: ['sourceIp'] },
    { body: { ssh: {} }, fields: ['ssh.authMethod', 'ssh.sourceIp'] },
    { body: { ssh: { ...ssh, authMethod: 'both' } }, fields: ['ssh.authMethod'] },
    { body: { ssh: { ...ssh, user: 'a' } }, fields: ['ssh.user'] },
    { body: { ssh, scheme: 'http', path: '/' }, fields: ['path', 'scheme'] },
  ])('$body', async ({ body, fields }) => {
    const answer = await call('POST', `/${tunnel.id}/explain`, { body })
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', fields])
  })
})

test('a viewer may call explain; a tunnel of another namespace is not found', async () => {
  const { id } = await makeTunnel()
  const body = { sourceIp: '203.0.113.7' }
  expect(codeOf(await acme.as('viewer')('POST', `${acme.path}/tunnels/${id}/explain`, { body }))).toBe('200 OK')
  const other = await deployment.namespace()
  const elsewhere = await other.as('admin')('POST', `${other.path}/tunnels/${id}/explain`, { body })
  expect(codeOf(elsewhere)).toBe('404 not_found')
})
