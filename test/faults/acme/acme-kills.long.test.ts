// Its tests build on each other:
// @module-tag whole-file
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { acmeArguments, ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { codeOf, type Tunnel } from '../../support/api/answers.ts'
import { openStateOf } from '../../support/deployment/data-directory.ts'
import { type MortalMooring, startMortal } from '../../support/deployment/mortal-mooring.ts'
import { freePort } from '../../support/free-port.ts'
import { LATER } from '../../support/patience.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

const opened = new AsyncDisposableStack()
let pebble: Pebble
let mooring: MortalMooring

beforeAll(async () => {
  const httpPort = await freePort()
  pebble = opened.use(await startPebble({ httpPort }))
  mooring = opened.use(await startMortal({ args: acmeArguments(pebble, httpPort) }))
})
afterAll(() => opened.disposeAsync())

const post = (key: string) =>
  mooring.call('POST', TUNNELS, {
    body: { name: key, regionId: mooring.living().ready.regionId },
    headers: { 'Idempotency-Key': key },
  })

const valid = async ({ id }: Tunnel) =>
  vi.waitFor(async () => {
    const { certificate } = (await mooring.call('GET', `${TUNNELS}/${id}/certificate`)).body.data
    expect(certificate.status).toBe('valid')
    return certificate
  }, LATER)

/** Names of Secrets of orders and certificates on disk. */
async function secrets(): Promise<readonly string[]> {
  await using copy = await openStateOf(mooring.dataDir)
  const { items } = await copy.store.list(Secret, { namespace: SYSTEM_NAMESPACE })
  return items.map(({ metadata }) => metadata.name).filter((name) => name.includes('tunnel-'))
}

test.each([
  'order.check',
  'order.order',
  // The CA has the order, but this process has not recorded it.
  'order.sent',
  'order.validate',
  'order.challenge',
  'order.issued',
  'tunnel.installed',
])('after kill -9 at %s the same order leads to the certificate', async (step) => {
  const before = pebble.count(ORDERS)
  await mooring.expectKilledAt(step, () => post(step))
  await mooring.start()
  const answer = await post(step)
  expect(codeOf(answer)).toBe('201 OK')
  const { tunnel } = answer.body.data
  expect((await valid(tunnel)).issuer).toContain('Pebble')
  expect(pebble.count(ORDERS) - before).toBe(1)
  await vi.waitFor(async () => {
    const left = await secrets()
    expect(left.filter((name) => name.includes(tunnel.hostname))).toEqual([`tunnel-${tunnel.hostname}-certificate`])
  }, LATER)
})

test('after kill -9 while the CA validates, when no edge is there, another order follows soon', async () => {
  const before = pebble.count(ORDERS)
  await mooring.expectKilledAt('order.answered', () => post('answered'))
  await mooring.start()
  const { tunnel } = (await post('answered')).body.data
  await valid(tunnel)
  expect(pebble.count(ORDERS) - before).toBeLessThanOrEqual(2)
})

test('after all crashes the account is the first one, and no order is left', async () => {
  expect(pebble.count(/There are now \d+ accounts/g)).toBe(1)
  // The Secret of an order is removed after the certificate is valid.
  await vi.waitFor(async () => expect((await secrets()).filter((name) => name.endsWith('-order'))).toEqual([]), LATER)
})
