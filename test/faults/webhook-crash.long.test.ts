import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Tunnel, WebhookAnswer } from '../support/api/answers.ts'
import { expectSuccess } from '../support/api/tenant.ts'
import { type MortalMooring, startMortal } from '../support/deployment/mortal-mooring.ts'
import { type Person, person } from '../support/edge/openssh.ts'
import { startReceiver, verify } from '../support/webhooks/receiver.ts'
import { LATER } from '../support/patience.ts'

/** Mooring killed (SIGKILL) at each step of a delivery, on one data directory. */

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'
const opened = new AsyncDisposableStack()
let mooring: MortalMooring
let user: Person
beforeAll(async () => {
  mooring = opened.use(await startMortal())
  user = opened.use(await person())
})
afterAll(() => opened.disposeAsync())

test.each(['webhook.seen', 'webhook.dispatched', 'webhook.sent', 'webhook.finished'])(
  'a connect is delivered under one id, and listed as one delivery, after kill -9 at %s',
  async (step) => {
    await using receiver = await startReceiver()
    const { tunnel } = (await expectSuccess(mooring.call('POST', TUNNELS, tunnelBody()))).body.data
    const body = { url: `http://127.0.0.1:${receiver.port}/`, events: ['tunnel.connected'] }
    const { webhook } = (await expectSuccess(mooring.call('POST', `${TUNNELS}/${tunnel.id}/webhooks`, { body }))).body.data
    const path = `${TUNNELS}/${tunnel.id}`
    await mooring.dieAt(step, async () => {
      await user.forward(tunnel, receiver.port)
      return mooring.call('GET', path)
    })
    const deliveries = await delivered(tunnel, webhook)
    const { connections } = (await expectSuccess(mooring.call('GET', `${path}/connections?type=connect`))).body.data
    expect(deliveries.map(({ type, status }) => `${type} ${status}`)).toEqual(connections.map(() => 'tunnel.connected delivered'))
    expect(connections).toHaveLength(1)
    expect(new Set(receiver.bodies().map(({ id }) => id))).toEqual(new Set(deliveries.map(({ eventId }) => eventId)))
    expect(receiver.received.length).toBeGreaterThanOrEqual(1)
    for (const message of receiver.received) verify(webhook.secret ?? '', message)
    // Only the step at which the response was not kept repeats the message.
    expect(receiver.received).toHaveLength(step === 'webhook.sent' ? 2 : 1)
  },
)

test('the disconnect of a session that a kill -9 of edge, operator and journal ended is delivered once', async () => {
  await using receiver = await startReceiver()
  const { tunnel } = (await expectSuccess(mooring.call('POST', TUNNELS, tunnelBody()))).body.data
  const body = { url: `http://127.0.0.1:${receiver.port}/` }
  const { webhook } = (await expectSuccess(mooring.call('POST', `${TUNNELS}/${tunnel.id}/webhooks`, { body }))).body.data
  await user.forward(tunnel, receiver.port)
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), LATER)
  await mooring.kill()
  await mooring.start()
  await vi.waitFor(() => expect(receiver.received).toHaveLength(2), LATER)
  const deliveries = await delivered(tunnel, webhook)
  expect(deliveries.map(({ type, status }) => `${type} ${status}`)).toEqual([
    'tunnel.disconnected delivered',
    'tunnel.connected delivered',
  ])
  expect(receiver.bodies()[1]).toMatchObject({ type: 'tunnel.disconnected', data: { reason: 'edge_lost', sequence: 2 } })
  expect(receiver.received).toHaveLength(2)
})

const tunnelBody = () => ({
  body: { name: 'web', regionId: mooring.living().ready.regionId, config: { authorizedKeys: [user.publicKey] } },
})

/** Waits until no delivery is pending, and returns all. */
async function delivered({ id }: Tunnel, webhook: WebhookAnswer) {
  return vi.waitFor(async () => {
    const { deliveries } = (await expectSuccess(mooring.call('GET', `${TUNNELS}/${id}/webhooks/${webhook.id}/deliveries`))).body
      .data
    expect(deliveries.map(({ status }) => status)).toContain('delivered')
    expect(deliveries.map(({ status }) => status)).not.toContain('pending')
    return deliveries
  }, LATER)
}
