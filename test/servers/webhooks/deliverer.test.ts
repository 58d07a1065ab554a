import { afterAll, beforeAll, expect, test } from 'vitest'
import { TunnelWebhook } from '../../../crds/tunnel-webhook.ts'
import { type Delivering, openDelivering, OTHER_NAMESPACE, secrets } from '../../support/webhooks/delivering.ts'
import { type Answer, type MessageBody, type Received, startReceiver, verify } from '../../support/webhooks/receiver.ts'

/** Deliveries from a journal in SQLite, with the time that a test sets. */

let shared: Delivering
beforeAll(async () => {
  shared = await openDelivering()
})
afterAll(() => shared[Symbol.asyncDispose]())

const DAY = 86_400_000
/** Time limit of an attempt, in milliseconds. No test reaches it, so an attempt without a response keeps its slot. */
const NEVER_MS = 3_600_000
const urlOf = ({ port }: { readonly port: number }) => `http://127.0.0.1:${port}/`
/** Answers with each status in turn, then with the last one. */
const answering =
  (...statuses: number[]): Answer =>
  (response, _message, index) => {
    response.writeHead(statuses[index] ?? statuses.at(-1) ?? 200).end()
  }
const types = (bodies: readonly MessageBody[]) => bodies.map(({ type, data }) => `${type} ${data.sequence}`)

test('a failed delivery is attempted again when its time has come, under the same id, until it succeeds', async () => {
  await using at = await shared.scope()
  await using receiver = await startReceiver(answering(500, 503, 200))
  const webhook = await at.subscribe(urlOf(receiver))
  at.start()
  const session = await at.connect()
  const attempts = async () => (await at.deliveries(webhook)).map(({ attempt, status }) => `${attempt} ${status}`)
  await expect.poll(attempts).toEqual(['1 pending'])
  await at.pass(4_000)
  expect(await attempts()).toEqual(['1 pending'])
  await at.pass(1_100)
  await expect.poll(attempts).toEqual(['2 pending'])
  await at.pass(31_000)
  await expect.poll(attempts).toEqual(['3 delivered'])
  expect(receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual([session.id, session.id, session.id])
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
  // The library accepts a timestamp of up to five minutes ahead.
  for (const message of receiver.received) verify(secrets(webhook.metadata.uid, 1), message)
})

test('a disconnect waits for the connect of its session; other sessions do not', async () => {
  await using at = await shared.scope()
  let isRefusing = true
  await using receiver = await startReceiver((response, message) => {
    const isConnect = (JSON.parse(message.body) as MessageBody).type === 'tunnel.connected'
    response.writeHead(isRefusing && isConnect ? 500 : 200).end()
  })
  await at.subscribe(urlOf(receiver))
  at.start()
  const session = await at.connect()
  await expect.poll(() => types(receiver.bodies())).toEqual(['tunnel.connected 1'])
  await at.disconnect(session)
  isRefusing = false
  await at.connect()
  await expect.poll(() => types(receiver.bodies())).toEqual(['tunnel.connected 1', 'tunnel.connected 1'])
  await at.pass(5_100)
  await expect.poll(() => types(receiver.bodies()).slice(2)).toEqual(['tunnel.connected 1', 'tunnel.disconnected 2'])
})

test('a receiver that does not answer holds up no other', async () => {
  await using at = await shared.scope()
  await using slow = await startReceiver(() => undefined)
  await using fast = await startReceiver()
  await at.subscribe(urlOf(slow))
  await at.subscribe(urlOf(fast))
  at.start({ timeoutMs: NEVER_MS })
  for (let count = 0; count < 50; count++) await at.connect()
  await expect.poll(() => fast.received.length, { interval: 5 }).toBe(50)
  expect(slow.received.length).toBeLessThanOrEqual(8)
})

test('a namespace with more slow deliveries than slots delays no other namespace', async () => {
  await using at = await shared.scope()
  await using other = await shared.scope(OTHER_NAMESPACE)
  await using slow = await startReceiver(() => undefined)
  await using fast = await startReceiver()
  for (let count = 0; count < 5; count++) await at.subscribe(urlOf(slow))
  await other.subscribe(urlOf(fast))
  for (let count = 0; count < 10; count++) await at.connect()
  at.start({ timeoutMs: NEVER_MS, limits: { total: 4, perNamespace: 2, perWebhook: 2 } })
  await expect.poll(() => slow.received.length).toBe(2)
  for (let count = 0; count < 10; count++) await other.connect()
  await expect.poll(() => fast.received.length).toBe(10)
  expect(slow.received).toHaveLength(2)
})

test('a deliverer that stops in the middle of a request leaves it to the next one, under the same id', async () => {
  await using at = await shared.scope()
  let isSilent = true
  await using receiver = await startReceiver((response) => {
    if (!isSilent) response.end()
  })
  const webhook = await at.subscribe(urlOf(receiver))
  const stop = at.start({ timeoutMs: NEVER_MS })
  const session = await at.connect()
  await expect.poll(() => receiver.received.length).toBe(1)
  await stop()
  expect(await at.deliveries(webhook)).toMatchObject([{ status: 'pending', attempt: 0 }])
  isSilent = false
  at.start()
  await expect.poll(() => at.deliveries(webhook)).toMatchObject([{ status: 'delivered', attempt: 1 }])
  expect(receiver.bodies().map(({ id }) => id)).toEqual([session.id, session.id])
})

test('events recorded while no deliverer runs are delivered later; a process that is not leader delivers none', async () => {
  await using at = await shared.scope()
  await using receiver = await startReceiver()
  await at.subscribe(urlOf(receiver))
  await at.disconnect(await at.connect())
  let isLeader = false
  at.start({ mayAct: () => isLeader })
  await at.wake()
  expect((await at.outbox.events(1_000)).filter(({ tunnel }) => tunnel === at.uid)).toHaveLength(2)
  isLeader = true
  await at.wake()
  await expect.poll(() => types(receiver.bodies())).toEqual(['tunnel.connected 1', 'tunnel.disconnected 2'])
})

test('20 failures in a row over 3 days disable a webhook, and end its deliveries', async () => {
  await using at = await shared.scope()
  await using receiver = await startReceiver(answering(500))
  const webhook = await at.subscribe(urlOf(receiver), { events: ['tunnel.connected'] })
  at.start()
  for (let count = 1; count <= 19; count++) await at.connect()
  await expect.poll(() => receiver.received.length).toBe(19)
  expect((await at.statusOf(webhook))?.disabledReason).toBeUndefined()
  await at.pass(3 * DAY + 60_000)
  await expect.poll(async () => (await at.statusOf(webhook))?.disabledReason).toBe('too_many_failures')
  await at.wake()
  await expect.poll(async () => (await at.deliveries(webhook)).filter(({ status }) => status === 'pending')).toEqual([])
  const errors = (await at.deliveries(webhook)).map(({ error }) => error)
  expect(errors.some((error) => error?.startsWith('the webhook is not active'))).toBe(true)
})

test('an event from before a webhook’s creation is not delivered to it', async () => {
  await using at = await shared.scope()
  await using receiver = await startReceiver()
  await at.connect({ at: Date.now() - 3_600_000 })
  const webhook = await at.subscribe(urlOf(receiver))
  at.start()
  const session = await at.connect()
  await expect.poll(() => receiver.bodies().map(({ id }) => id)).toEqual([session.id])
  expect(await at.deliveries(webhook)).toHaveLength(1)
})

test('deliveries of a deleted webhook end', async () => {
  await using at = await shared.scope()
  await using receiver = await startReceiver(answering(500))
  const webhook = await at.subscribe(urlOf(receiver))
  at.start()
  await at.connect()
  await expect.poll(() => receiver.received.length).toBe(1)
  await at.store.delete(TunnelWebhook, webhook.metadata)
  await at.pass(60_000)
  await expect.poll(() => at.deliveries(webhook)).toMatchObject([{ status: 'failed', error: 'the webhook was deleted' }])
  expect(receiver.received.map(({ body }: Received) => body)).toHaveLength(1)
})
