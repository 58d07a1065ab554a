import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { codeOf, fieldsOf, type Tunnel, type WebhookAnswer } from '../support/api/answers.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { person, type Person } from '../support/edge/openssh.ts'
import { ownAddress, startReceiver, verify } from '../support/webhooks/receiver.ts'

/** Webhooks of tunnels, with the stock ssh client and receivers on this machine. */

const SOON = { timeout: 60_000, interval: 20 }

const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let sshUser: Person
let host: string
beforeAll(async () => {
  acme = await deployment.namespace()
  sshUser = cleanup.use(await person())
  host = await ownAddress(deployment.installation.sharedUrl)
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

const call: ReturnType<Tenant['as']> = (method, path, options) =>
  acme.as('editor')(method, `${acme.path}/tunnels${path}`, options)
const makeTunnel = () => acme.tunnel({ authorizedKeys: [sshUser.publicKey] })
const urlOf = ({ port }: { readonly port: number }) => `http://${host}:${port}/hook?key=1`

/** Creates a webhook of a tunnel. */
async function subscribe(
  { id }: Tunnel,
  body: object,
): Promise<WebhookAnswer & { readonly secret: string; readonly path: string }> {
  const { webhook } = (await expectSuccess(call('POST', `/${id}/webhooks`, { body }))).body.data
  return { ...webhook, secret: webhook.secret ?? '', path: `/${id}/webhooks/${webhook.id}` }
}

const deliveriesOf = async ({ path }: { readonly path: string }, query = '') =>
  (await expectSuccess(call('GET', `${path}/deliveries${query}`))).body.data.deliveries

test('a client of ssh that connects and disconnects is reported by two signed messages, in order', async () => {
  await using receiver = await startReceiver()
  const tunnel = await makeTunnel()
  const webhook = await subscribe(tunnel, { url: urlOf(receiver) })
  expect(webhook.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  const client = await sshUser.forward(tunnel, receiver.port)
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), SOON)
  await client[Symbol.asyncDispose]()
  await vi.waitFor(() => expect(receiver.received).toHaveLength(2), SOON)

  const { id, hostname, url } = tunnel
  const about = { id, name: 'web', hostname, url, organization: acme.organization, namespace: acme.namespace }
  const [connected, disconnected] = receiver.bodies()
  const session = { tunnel: about, authMethod: 'key', keyFingerprint: expect.stringMatching(/^SHA256:/) as string }
  expect(connected).toMatchObject({ type: 'tunnel.connected', data: { ...session, reason: null, durationMs: null, sequence: 1 } })
  const end = { sessionId: connected?.data.sessionId, reason: expect.any(String) as string, sequence: 2 }
  expect(disconnected).toMatchObject({
    type: 'tunnel.disconnected',
    data: { ...session, ...end, durationMs: expect.any(Number) as number },
  })
  expect(connected?.data.clientIp).toBe(disconnected?.data.clientIp)
  for (const [index, message] of receiver.received.entries()) {
    expect(verify(webhook.secret, message)).toEqual(receiver.bodies()[index])
    expect(message.headers['webhook-id']).toBe(receiver.bodies()[index]?.id)
  }
  await vi.waitFor(async () => {
    const delivered = {
      status: 'delivered',
      attempt: 1,
      responseStatus: 200,
      responseBody: 'thanks',
      error: null,
      nextAttemptAt: null,
    }
    expect(await deliveriesOf(webhook)).toMatchObject([
      { ...delivered, type: 'tunnel.disconnected', eventId: disconnected?.id },
      { ...delivered, type: 'tunnel.connected', eventId: connected?.id },
    ])
  }, SOON)
  expect(await deliveriesOf(webhook, '?limit=1')).toHaveLength(1)
})

test('a webhook gets the events that it names, none while it is disabled, and none after its deletion', async () => {
  await using receiver = await startReceiver()
  const tunnel = await makeTunnel()
  const ends = await subscribe(tunnel, { url: urlOf(receiver), events: ['tunnel.disconnected'] })
  const off = await subscribe(tunnel, { url: urlOf(receiver), enabled: false })
  const gone = await subscribe(tunnel, { url: urlOf(receiver) })
  await expectSuccess(call('DELETE', gone.path))
  expect(codeOf(await call('GET', gone.path))).toBe('404 not_found')
  const client = await sshUser.forward(tunnel, receiver.port)
  await vi.waitFor(() => expect(client.said()).toContain(tunnel.url), SOON)
  await client[Symbol.asyncDispose]()
  await vi.waitFor(() => expect(receiver.bodies().map(({ type }) => type)).toEqual(['tunnel.disconnected']), SOON)
  expect(verify(ends.secret, receiver.received[0] ?? { headers: {}, body: '', at: 0 })).toBeDefined()
  expect(await deliveriesOf(off)).toEqual([])
})

test('the deletion of a tunnel sends the disconnect of its session once', async () => {
  await using receiver = await startReceiver()
  const tunnel = await makeTunnel()
  const webhook = await subscribe(tunnel, { url: urlOf(receiver) })
  await using client = await sshUser.forward(tunnel, receiver.port)
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), SOON)
  await expectSuccess(call('DELETE', `/${tunnel.id}`))
  expect(await client.exited).not.toBe(0)
  expect(receiver.bodies().map(({ type }) => type)).toEqual(['tunnel.connected', 'tunnel.disconnected'])
  expect(receiver.bodies()[1]?.data).toMatchObject({ reason: 'tunnel_deleted', tunnel: { id: tunnel.id } })
  verify(webhook.secret, receiver.received[1] ?? { headers: {}, body: '', at: 0 })
  expect(codeOf(await call('GET', webhook.path))).toBe('404 not_found')
})

test('a failed delivery is shown with its response and the time of the next attempt; redeliver repeats it under the same id', async () => {
  const seen = Promise.withResolvers<undefined>()
  await using receiver = await startReceiver((response, _message, index) => {
    if (index === 0) response.writeHead(500).end('x'.repeat(5_000))
    // The second attempt stays under way until the test has seen the first.
    else void seen.promise.then(() => response.writeHead(204).end())
  })
  const tunnel = await makeTunnel()
  const webhook = await subscribe(tunnel, { url: urlOf(receiver), events: ['tunnel.connected'] })
  await using client = await sshUser.forward(tunnel, receiver.port)
  await vi.waitFor(() => expect(client.said()).toContain(tunnel.url), SOON)
  const first = await vi.waitFor(async () => {
    const [delivery] = await deliveriesOf(webhook)
    expect(delivery).toMatchObject({ status: 'pending', attempt: 1, responseStatus: 500, responseBody: 'x'.repeat(1_024) })
    return delivery
  }, SOON)
  seen.resolve(undefined)
  const delay = Date.parse(first?.nextAttemptAt ?? '') - Date.parse(first?.requestedAt ?? '')
  expect(delay).toBeGreaterThanOrEqual(4_500)
  expect(delay).toBeLessThan(20_000)
  const again = await call('POST', `${webhook.path}/deliveries/${first?.id ?? ''}/redeliver`)
  expect(again).toMatchObject({ status: 202, body: { data: { delivery: { eventId: first?.eventId, status: 'pending' } } } })
  await vi.waitFor(
    () =>
      expect(
        receiver
          .bodies()
          .map(({ id }) => id)
          .slice(0, 2),
      ).toEqual([first?.eventId, first?.eventId]),
    SOON,
  )
  // The first delivery goes on by its schedule, which tests of the deliverer show with their own clock.
  await vi.waitFor(async () => {
    const [redelivery] = await deliveriesOf(webhook)
    expect(redelivery).toMatchObject({ id: again.body.data.delivery.id, status: 'delivered', attempt: 1, responseStatus: 204 })
  }, SOON)
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
})

test('a test event is delivered to a disabled webhook too; 410 disables a webhook until its owner enables it', async () => {
  let status = 200
  await using receiver = await startReceiver((response) => response.writeHead(status).end('tested'))
  const tunnel = await makeTunnel()
  const webhook = await subscribe(tunnel, { url: urlOf(receiver), enabled: false })
  const tested = await call('POST', `${webhook.path}/test`)
  const result = {
    type: 'tunnel.test',
    status: 'delivered',
    attempt: 1,
    responseStatus: 200,
    responseBody: 'tested',
    error: null,
  }
  expect(tested).toMatchObject({ status: 200, body: { data: { delivery: result } } })
  expect(receiver.bodies()).toMatchObject([{ type: 'tunnel.test', data: { tunnel: { id: tunnel.id } } }])
  status = 410
  await expectSuccess(call('PATCH', webhook.path, { body: { enabled: true } }))
  await expectSuccess(call('POST', `${webhook.path}/test`))
  const shown = async () => (await call('GET', webhook.path)).body.data.webhook
  await vi.waitFor(async () => expect(await shown()).toMatchObject({ enabled: false, disabledReason: 'receiver_gone' }), SOON)
  // The spec says so as well, from then on.
  await vi.waitFor(async () => {
    await expectSuccess(call('PATCH', webhook.path, { body: { enabled: true } }))
    expect(await shown()).toMatchObject({ enabled: true, disabledReason: null })
  }, SOON)
})

test('a rotated secret signs beside the former one', async () => {
  await using receiver = await startReceiver()
  const webhook = await subscribe(await makeTunnel(), { url: urlOf(receiver) })
  const { secret = '' } = (await expectSuccess(call('POST', `${webhook.path}/rotate-secret`))).body.data.webhook
  expect(secret).not.toBe(webhook.secret)
  await expectSuccess(call('POST', `${webhook.path}/test`))
  expect(receiver.received).toHaveLength(1)
  for (const each of [secret, webhook.secret]) verify(each, receiver.received[0] ?? { headers: {}, body: '', at: 0 })
  expect(JSON.stringify((await call('GET', webhook.path)).body)).not.toContain('whsec_')
})

describe('an invalid webhook is rejected with the field and the rule', () => {
  test.each<{ url: unknown }>([
    ...[
      'ftp://example.com/',
      'https://user:secret@example.com/',
      'https://example.com/#x',
      'https://exa mple.com/',
      'https:///x',
      7,
    ].map((url) => ({ url })),
    ...[
      'https://example.com:22/',
      'https://example.com:0/',
      'https://example.com:70000/',
      `https://example.com/${'x'.repeat(10_240)}`,
    ].map((url) => ({ url })),
    // Addresses that no deployment mode allows, in several notations.
    ...['http://169.254.169.254/', 'http://2852039166/', 'http://0251.0376.0251.0376/', 'http://[::ffff:169.254.169.254]/'].map(
      (url) => ({ url }),
    ),
    ...[
      'http://0.0.0.0/',
      'http://[64:ff9b::a9fe:a9fe]/',
      'http://[fe80::1]/',
      'http://224.0.0.1/',
      'http://[fd00:ec2::254]/',
    ].map((url) => ({ url })),
  ])('$url', async ({ url }) => {
    const { path } = await webhookOfAll()
    for (const [method, at] of [
      ['POST', path.replace(/\/[^/]+$/, '')],
      ['PATCH', path],
    ] as const) {
      const answer = await call(method, at, { body: { url } })
      expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', ['url']])
      expect(answer.body.msg).not.toContain('secret')
    }
    expect((await call('GET', path)).body.data.webhook.url).toBe('https://example.com/hook')
  })

  test('when its host is that of a tunnel, or its address a listener of Mooring', async () => {
    const { path, tunnel } = await webhookOfAll()
    const own = deployment.installation.kind === 'embedded' ? [deployment.installation.sharedUrl] : []
    for (const url of [tunnel.url, `${tunnel.directUrl}/hook`, ...own])
      expect(fieldsOf(await call('PATCH', path, { body: { url } })), url).toEqual(['url'])
  })

  test('names every wrong field', async () => {
    const { id } = (await webhookOfAll()).tunnel
    const body = { url: 'x', events: ['tunnel.exploded'], enabled: 'yes', secret: 'whsec_x' }
    expect(fieldsOf(await call('POST', `/${id}/webhooks`, { body }))).toEqual(['enabled', 'events[0]', 'secret', 'url'])
    expect(fieldsOf(await call('POST', `/${id}/webhooks`, { body: { url: 'https://example.com/', events: [] } }))).toEqual([
      'events',
    ])
  })

  let made: Promise<{ readonly path: string; readonly tunnel: Tunnel }> | undefined
  const webhookOfAll = () => (made ??= make())
  async function make() {
    const tunnel = await makeTunnel()
    return { tunnel, path: (await subscribe(tunnel, { url: 'https://example.com/hook' })).path }
  }
})

test('a tunnel has at most ten webhooks; an Idempotency-Key creates one, and returns its secret again', async () => {
  const tunnel = await makeTunnel()
  const path = `/${tunnel.id}/webhooks`
  const body = { url: 'https://example.com/hook' }
  const headers = { 'Idempotency-Key': 'first' }
  const editor = acme.as('editor')
  const post = (about: object) => editor('POST', `${acme.path}/tunnels${path}`, { body: about, headers })
  const [first, second] = [await post(body), await post(body)]
  expect(second.body.data.webhook).toEqual(first.body.data.webhook)
  expect(codeOf(await post({ url: 'https://example.com/' }))).toBe('422 idempotency_key_reused')
  for (let count = 1; count < 10; count++) await subscribe(tunnel, body)
  const full = await call('POST', path, { body })
  expect(codeOf(full)).toBe('403 quota_exceeded')
  expect(full.body.msg).toContain('10 of 10 webhooks')
  expect((await call('GET', `${path}?limit=3`)).body.data.webhooks).toHaveLength(3)
})

test('a viewer reads webhooks without their secrets and the rest of their URLs, and changes nothing; another tenant sees none', async () => {
  await using receiver = await startReceiver()
  const tunnel = await makeTunnel()
  const webhook = await subscribe(tunnel, { url: urlOf(receiver) })
  await expectSuccess(call('POST', `${webhook.path}/test`))
  const path = `${acme.path}/tunnels${webhook.path}`
  const viewer = acme.as('viewer')
  const shown = { ...(await call('GET', webhook.path)).body.data.webhook, url: `http://${host}:${receiver.port}` }
  expect((await viewer('GET', path)).body.data.webhook).toEqual(shown)
  expect((await viewer('GET', `${acme.path}/tunnels/${tunnel.id}/webhooks`)).body.data.webhooks).toEqual([shown])
  const seen = (await viewer('GET', `${path}/deliveries`)).body.data.deliveries
  expect(seen).toMatchObject([{ status: 'delivered', responseStatus: 200, responseBody: null }])
  for (const [method, rest, body] of [
    ['PATCH', '', { enabled: false }],
    ['DELETE', '', undefined],
    ['POST', '/test', undefined],
    ['POST', '/rotate-secret', undefined],
  ] as const) {
    expect(codeOf(await viewer(method, `${path}${rest}`, { body }))).toBe('403 forbidden')
  }
  const other = await deployment.namespace()
  expect(codeOf(await other.as('admin')('GET', path))).toMatch(/^40[34] /)
  const sibling = await makeTunnel()
  expect(codeOf(await call('GET', `/${sibling.id}/webhooks/${webhook.id}`))).toBe('404 not_found')
})

test('each change of a webhook has an audit entry, without the secret and the path of the URL', async () => {
  const webhook = await subscribe(await makeTunnel(), { url: 'https://example.com/hook' })
  await expectSuccess(call('PATCH', webhook.path, { body: { url: 'https://example.com/other', events: null } }))
  await expectSuccess(call('POST', `${webhook.path}/rotate-secret`))
  await expectSuccess(call('DELETE', webhook.path))
  await vi.waitFor(async () => {
    const { body } = await acme.as('viewer')('GET', `${acme.path}/audit?kind=TunnelWebhook&id=${webhook.id}`)
    expect(body.data.entries.map(({ action, via }) => `${via} ${action}`)).toEqual([
      'rest delete',
      'rest update',
      'rest update',
      'rest create',
    ])
    expect(JSON.stringify(body)).not.toMatch(/whsec_|\/hook|\/other/)
    expect(JSON.stringify(body)).toContain('https://example.com (hmac-sha256:')
  }, SOON)
})
