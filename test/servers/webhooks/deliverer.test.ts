import { afterAll, beforeAll, expect, test } from 'vitest'
import { TunnelWebhook } from '../../../crds/tunnel-webhook.ts'
import { SLOTS } from '../../../operator/webhooks/slots.ts'
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

test('a disconnect waits for the first attempt of the connect of its session, and for no retry', async () => {
  await using at = await shared.scope()
  const answered = Promise.withResolvers<undefined>()
  await using receiver = await startReceiver((response, _message, index) => {
    if (index === 1) void answered.promise.then(() => response.writeHead(500).end())
    else response.end()
  })
  const webhook = await at.subscribe(urlOf(receiver))
  at.start()
  // A receiver that has answered gets several messages at a time.
  await at.connect()
  await expect.poll(() => at.deliveries(webhook)).toMatchObject([{ status: 'delivered' }])
  const session = await at.connect()
  await expect.poll(() => receiver.received.length).toBe(2)
  await at.disconnect(session)
  await at.connect()
  await expect.poll(() => types(receiver.bodies()).slice(2)).toEqual(['tunnel.connected 1'])
  answered.resolve(undefined)
  await expect.poll(() => types(receiver.bodies()).slice(3)).toEqual(['tunnel.disconnected 2'])
  await at.pass(5_100)
  await expect.poll(() => types(receiver.bodies()).slice(4)).toEqual(['tunnel.connected 1'])
})

test('Retry-After postpones the next attempt', async () => {
  await using at = await shared.scope()
  await using receiver = await startReceiver((response, _message, index) =>
    index === 0 ? response.writeHead(503, { 'Retry-After': '60' }).end() : response.end(),
  )
  const webhook = await at.subscribe(urlOf(receiver))
  at.start()
  await at.connect()
  await expect.poll(() => at.deliveries(webhook)).toMatchObject([{ attempt: 1, nextAt: at.now().getTime() + 60_000 }])
  await at.pass(60_000)
  await expect.poll(() => at.deliveries(webhook)).toMatchObject([{ attempt: 2, status: 'delivered' }])
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

test('five silent receivers hold up none of twenty others of their namespace', async () => {
  await using at = await shared.scope()
  await using silent = await startReceiver(() => undefined)
  await using good = await startReceiver()
  for (let count = 0; count < 5; count++) await at.subscribe(urlOf(silent))
  await using other = await shared.scope()
  for (const scope of [at, other])
    for (let count = 0; count < (scope === at ? 5 : 10); count++) await scope.subscribe(urlOf(good))
  at.start({ timeoutMs: NEVER_MS, limits: { ...SLOTS, perNamespace: 8, reserved: 2, slowPerNamespace: 2 } })
  for (let count = 0; count < 20; count++) {
    await at.connect()
    await other.connect()
  }
  await expect.poll(() => good.received.length, { interval: 5 }).toBe(20 * 15)
  expect(silent.received.length).toBe(5)
})

test('a namespace with more slow deliveries than slots delays no other namespace', async () => {
  await using at = await shared.scope()
  await using other = await shared.scope(OTHER_NAMESPACE)
  await using slow = await startReceiver(() => undefined)
  await using fast = await startReceiver()
  for (let count = 0; count < 5; count++) await at.subscribe(urlOf(slow))
  await other.subscribe(urlOf(fast))
  for (let count = 0; count < 10; count++) await at.connect()
  at.start({ timeoutMs: NEVER_MS, limits: { ...SLOTS, total: 4, perNamespace: 2, reserved: 0 } })
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

test('the events of a deleted tunnel hold up its deletion until their first attempts, at most 10 s', async () => {
  await using at = await shared.scope()
  let isSilent = false
  await using receiver = await startReceiver((response, { body }) => {
    if (!isSilent) response.writeHead((JSON.parse(body) as MessageBody).data.sequence === 1 ? 200 : 500).end()
  })
  const deletedAt = at.now()
  const session = await at.connect()
  expect(await at.lastEvents(deletedAt)).toBeUndefined()
  await at.subscribe(urlOf(receiver))
  expect(await at.lastEvents(deletedAt)).toBe(200)
  await at.disconnect(session)
  expect(await at.lastEvents(deletedAt)).toBe(200)
  const stop = at.start({ timeoutMs: NEVER_MS })
  await expect.poll(() => at.lastEvents(deletedAt)).toBeUndefined()
  expect(types(receiver.bodies())).toEqual(['tunnel.connected 1', 'tunnel.disconnected 2'])

  isSilent = true
  const other = await at.connect()
  await expect.poll(() => receiver.received.length).toBe(3)
  await at.disconnect(other)
  expect(await at.lastEvents(deletedAt)).toBe(200)
  await at.pass(10_001)
  expect(await at.lastEvents(deletedAt)).toBeUndefined()
  await stop()
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
