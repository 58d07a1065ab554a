import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { createAcme } from '../../../operator/acme/acme.ts'
import { conditionOf } from '../../../store/conditions.ts'
import type { Store } from '../../../store/port.ts'
import { startLyingCa } from '../../support/acme/lying-ca.ts'
import { ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { freePort } from '../../support/free-port.ts'
import { DAY, HOUR, inNamespace, obtainedAt, startTunnels } from '../../support/operator/tunnel-controllers.ts'

/** Orders by the operator's controllers, whose clock a test advances, at a real CA. */

const LIFETIME = 6 * DAY
const opened = new AsyncDisposableStack()
let pebble: Pebble
let httpPort: number
/** Store whose tunnels the challenges are answered for. */
let store: Store | undefined

beforeAll(async () => {
  // Answers challenges from the resources, as edges do.
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const response = await responseTo(incoming.headers.host ?? '', incoming.url ?? '')
      outgoing.writeHead(response === undefined ? 404 : 200).end(response)
    })().catch(() => outgoing.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  opened.defer(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  const address = server.address()
  httpPort = typeof address === 'object' && address ? address.port : 0
  pebble = opened.use(await startPebble({ httpPort, config: shortLived }))
})
afterAll(() => opened.disposeAsync())

const shortLived = {
  profiles: {
    short: { description: 'six days', validityPeriod: LIFETIME / 1_000 },
    long: { description: 'ninety days', validityPeriod: (90 * DAY) / 1_000 },
  },
}

/** Returns the key authorization of a challenge (RFC 8555, section 8.1), or undefined for a token that the tunnel does not have. */
async function responseTo(host: string, path: string): Promise<string | undefined> {
  const [hostname = '', name = ''] = host.split('.')
  const token = path.slice(path.lastIndexOf('/') + 1)
  if ((await tokenOf(hostname)) !== token) return undefined
  const endpoint = await store?.get(TunnelEndpoint, { name })
  return `${token}.${endpoint?.status?.acmeThumbprint ?? ''}`
}

async function tokenOf(hostname: string): Promise<string | undefined> {
  const tunnels = (await store?.list(Tunnel))?.items ?? []
  return tunnels.find(({ status }) => status?.hostname === hostname)?.status?.certificate?.acme?.token
}

async function startOrders(settings: object = {}) {
  const at = await startTunnels({ acme: (deps) => createAcme({ ...deps, registry: new Registry() }) })
  ;({ store } = at)
  const acme = { ...acmeOf(pebble), ...settings }
  await at.makeRegion()
  await at.makeEndpoint('a', { issuer: 'acme', publicHttpPort: httpPort, acme })
  await at.store.mergePatch(TunnelEndpoint, { name: 'a' }, { spec: { active: true } })
  return at
}

const acmeOf = ({ directoryUrl, authority, nameserver }: Pebble) => ({
  ...{ profile: 'short', directoryUrl, agreeToTerms: true, caBundle: authority.certificate, nameservers: [nameserver] },
})

type Running = Awaited<ReturnType<typeof startOrders>>

/** Advances the clock in small steps, as time passes for the CA, until the tunnel is as desired. */
async function drive(at: Running, name: string, desired: (tunnel: Tunnel) => boolean): Promise<Tunnel> {
  for (;;) {
    const tunnel = await at.store.get(Tunnel, inNamespace(name))
    if (tunnel && desired(tunnel)) return tunnel
    await at.advance(100)
    await delay(10)
  }
}

const isValid = ({ status }: Tunnel): boolean =>
  status?.certificate?.status === 'valid' && status.certificate.acme?.token === undefined

async function certified(at: Running, name = 'web'): Promise<Tunnel> {
  await at.makeTunnel(name)
  return drive(at, name, isValid)
}

/** Lets time pass, in steps after each of which the controllers may speak to the CA. */
async function pass(at: Running, ms: number, stepMs = HOUR): Promise<void> {
  for (let left = ms; left > 0; left -= stepMs) {
    await at.advance(Math.min(left, stepMs))
    await delay(5)
  }
}

test('a certificate of six days is renewed after two thirds of them, by an order that names it, and is valid meanwhile', async () => {
  await using at = await startOrders()
  const before = await certified(at)
  const orders = pebble.count(ORDERS)
  await pass(at, LIFETIME * 0.5, 6 * HOUR)
  const half = await at.store.get(Tunnel, inNamespace('web'))
  expect(half?.status?.certificate).toMatchObject({ status: 'valid', obtainedAt: before.status?.certificate?.obtainedAt })
  expect(pebble.count(ORDERS)).toBe(orders)
  await at.advance(LIFETIME * 0.17)
  const seen = new Set<string | undefined>()
  const after = await drive(at, 'web', (tunnel) => {
    seen.add(tunnel.status?.certificate?.status)
    return obtainedAt(tunnel) > obtainedAt(before) && isValid(tunnel)
  })
  expect([...seen]).toEqual(['valid'])
  expect(conditionOf(after, 'Renewing')).toBeUndefined()
  expect(pebble.count(ORDERS) - orders).toBe(1)
  expect(pebble.count(/is a replacement of/g)).toBe(1)
})

test('a certificate is renewed by a CA that has an internal error when an order names the former one', async () => {
  await using ca = await startLyingCa(pebble)
  ca.tell(async ({ payload }, forward) => {
    const answer = await forward()
    if (!payload.includes('"replaces"')) return answer
    return {
      ...answer,
      status: 500,
      body: JSON.stringify({ type: 'urn:ietf:params:acme:error:serverInternal', detail: 'no such order' }),
    }
  })
  await using at = await startOrders({ directoryUrl: ca.directoryUrl })
  const before = await certified(at)
  await at.advance(LIFETIME * 0.67)
  await drive(at, 'web', (tunnel) => obtainedAt(tunnel) > obtainedAt(before) && isValid(tunnel))
  expect(ca.asked.filter(({ payload }) => payload.includes('"replaces"'))).toHaveLength(1)
})

test('a CA that wants a certificate back gets it renewed at its next answer', async () => {
  await using at = await startOrders()
  const before = await certified(at)
  const secret = await at.secretOf(before.status?.hostname)
  const [leaf = ''] = Buffer.from(secret?.data['tls.crt'] ?? '', 'base64')
    .toString()
    .split(/(?<=-----END CERTIFICATE-----)/)
  const window = { start: new Date(at.now().getTime() - 2 * HOUR), end: new Date(at.now().getTime() - HOUR) }
  await pebble.setRenewalInfo(leaf, { suggestedWindow: window })
  await pass(at, 25 * HOUR)
  const after = await drive(at, 'web', (tunnel) => obtainedAt(tunnel) > obtainedAt(before) && isValid(tunnel))
  expect(obtainedAt(after) - obtainedAt(before)).toBeLessThan(26 * HOUR)
})

test('the budget of a week holds, and a place in it is used when it is free', async () => {
  await using at = await startOrders({ weeklyBudget: 2, profile: 'long' })
  await certified(at, 'one')
  await certified(at, 'two')
  await at.makeTunnel('three')
  const waiting = await drive(at, 'three', ({ status }) => status?.certificate?.status === 'pending')
  const { lastError, nextAttemptAt = '' } = waiting.status?.certificate ?? {}
  expect(lastError).toBe('the budget of 2 new certificates within 7 days for a.test is used up')
  const inMs = Date.parse(nextAttemptAt) - at.now().getTime()
  expect(inMs).toBeGreaterThan(7 * DAY - HOUR)
  expect(inMs).toBeLessThanOrEqual(7 * DAY + HOUR)
  const { items } = await at.store.list(Secret, { namespace: SYSTEM_NAMESPACE })
  expect(items.some(({ metadata }) => metadata.name.startsWith('acme-budget-'))).toBe(true)
  await at.advance(inMs + HOUR)
  await drive(at, 'three', isValid)
})

test('another directory means another account and another certificate, and the old one serves until then', async () => {
  await using other = await startPebble({ httpPort, config: shortLived })
  await using at = await startOrders()
  const before = await certified(at)
  const thumbprint = async () => (await at.store.get(TunnelEndpoint, { name: 'a' }))?.status?.acmeThumbprint
  const first = await thumbprint()
  await at.store.mergePatch(TunnelEndpoint, { name: 'a' }, { spec: { acme: acmeOf(other) } })
  const seen = new Set<string | undefined>()
  const after = await drive(at, 'web', (tunnel) => {
    seen.add(tunnel.status?.certificate?.status)
    return tunnel.status?.certificate?.acme?.directory === other.directoryUrl && isValid(tunnel)
  })
  expect([...seen]).toEqual(['valid'])
  expect(after.status?.certificate?.issuer).not.toBe(before.status?.certificate?.issuer)
  expect(await thumbprint()).not.toBe(first)
})

test('a clock that is months ahead makes a few orders a day, not one after the other', async () => {
  await using at = await startOrders()
  await certified(at)
  const orders = pebble.count(ORDERS)
  await at.advance(100 * DAY)
  const failed = await drive(at, 'web', ({ status }) => status?.certificate?.lastError?.includes('clock') === true)
  expect(failed.status?.certificate).toMatchObject({
    status: 'expired',
    lastError: 'the certificate authority has issued a certificate that has expired; the clock of this machine may be wrong',
  })
  await pass(at, DAY, HOUR / 4)
  expect(pebble.count(ORDERS) - orders).toBeLessThan(20)
})

test('a deleted tunnel leaves no Secret', async () => {
  await using at = await startOrders()
  const { status } = await certified(at)
  await at.store.delete(Tunnel, inNamespace('web'))
  await at.gone()
  const { items } = await at.store.list(Secret, { namespace: SYSTEM_NAMESPACE })
  expect(items.filter(({ metadata }) => metadata.name.includes(status?.hostname ?? '-'))).toEqual([])
})

test('an endpoint with another issuer leaves no order', async () => {
  await using at = await startOrders({ directoryUrl: `https://127.0.0.1:${await freePort()}/dir` })
  await at.makeTunnel()
  await drive(at, 'web', ({ status }) => status?.certificate?.status === 'failed')
  await at.store.mergePatch(TunnelEndpoint, { name: 'a' }, { spec: { issuer: 'local' } })
  await drive(at, 'web', (tunnel) => conditionOf(tunnel, 'Ready')?.reason === 'Assigned')
  const { items } = await at.store.list(Secret, { namespace: SYSTEM_NAMESPACE })
  expect(items.filter(({ metadata }) => metadata.name.endsWith('-order'))).toEqual([])
})

test('orders under way while the account gets another key lead to certificates, and so do later ones', async () => {
  await using at = await startOrders()
  const names = ['one', 'two', 'three', 'four', 'five']
  for (const name of names) await at.makeTunnel(name)
  await drive(at, 'one', ({ status }) => status?.certificate?.acme?.token !== undefined)
  const before = (await at.store.get(TunnelEndpoint, { name: 'a' }))?.status?.acmeThumbprint
  await at.store.mergePatch(TunnelEndpoint, { name: 'a' }, { spec: { acme: { accountKeyVersion: 2 } } })
  for (const name of names) await drive(at, name, isValid)
  await certified(at, 'later')
  const { acmeAccountKeyVersion, acmeThumbprint } = (await at.store.get(TunnelEndpoint, { name: 'a' }))?.status ?? {}
  expect(acmeAccountKeyVersion).toBe(2)
  expect(acmeThumbprint).not.toBe(before)
})
