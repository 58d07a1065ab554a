import { randomUUID, randomUUIDv7 } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { ConnectionRecord, Journal } from '../../../journal/port.ts'
import {
  type DeliveryAttempt,
  type DueQuery,
  type NewDelivery,
  KEPT_MAX,
  PENDING_MAX,
  TOO_MANY_PENDING,
  type WebhookOutbox,
} from '../../../journal/webhooks.ts'
import { connectionRecord, idAt } from './records.ts'
import { newTunnel } from './test-journal.ts'

/** Journal with its outbox. Other tests may use it at the same time. */
export interface OutboxUnderTest {
  readonly journal: Pick<Journal, 'connection'>
  readonly webhooks: WebhookOutbox
}

const MINUTE = 60_000

const ended = (session: ConnectionRecord, about: Partial<ConnectionRecord> = {}): ConnectionRecord =>
  connectionRecord({ ...session, type: 'disconnect', reason: 'client_closed', durationMs: 5, ...about, id: idAt(session.at) })

function deliveryOf(about: Partial<NewDelivery> = {}): NewDelivery {
  const at = about.at ?? Date.now()
  return {
    ...{ id: idAt(at), webhook: randomUUID(), event: randomUUIDv7(), type: 'tunnel.connected', session: null, sequence: 1, at },
    ...{ manual: false, body: '{"a":"☃"}', ...about },
  }
}

const attemptOf = ({ id }: NewDelivery, about: Partial<DeliveryAttempt> = {}): DeliveryAttempt => ({
  ...{ id, attempt: 1, status: 'delivered', nextAt: null, requestedAt: 17, responseStatus: 200, durationMs: 2.5 },
  ...{ responseBody: 'ok', error: null, at: 1_000, counts: true, ...about },
})

const failed = (delivery: NewDelivery, about: Partial<DeliveryAttempt> = {}) =>
  attemptOf(delivery, { status: 'pending', nextAt: Date.now() + MINUTE, responseStatus: 500, error: 'status 500', ...about })

/** Contract of the outbox of webhooks, the same for every journal. */
export function outboxConformance(name: string, opened: () => OutboxUnderTest): void {
  const eventsOf = async (tunnel: string) => (await opened().webhooks.events(10_000)).filter((event) => event.tunnel === tunnel)

  /** Records a connect and dispatches it to the given deliveries. */
  async function dispatched(deliveries: readonly NewDelivery[]): Promise<void> {
    const records = new Map(
      [...new Set(deliveries.map(({ event }) => event))].map((id) => [id, { ...connectionRecord({ tunnel: newTunnel() }), id }]),
    )
    await Promise.all([...records.values()].map((record) => opened().journal.connection(record)))
    await opened().webhooks.dispatch([...records.keys()], deliveries)
  }

  const due = async (webhook: string, about: Partial<DueQuery> = {}) => {
    const query = { now: Date.now() + 1, limit: 10_000, perWebhook: 100, busy: [], underWay: [], ...about }
    return (await opened().webhooks.due(query)).due.filter((delivery) => delivery.webhook === webhook)
  }

  describe(name, () => {
    test('offers connects and disconnects as events until they are dispatched, without refused logins', async () => {
      const { journal, webhooks } = opened()
      const connect = connectionRecord({ tunnel: newTunnel() })
      const disconnect = ended(connect)
      const refused = connectionRecord({ tunnel: connect.tunnel, type: 'refused', authMethod: null })
      for (const record of [connect, disconnect, refused]) await journal.connection(record)
      expect(await eventsOf(connect.tunnel)).toEqual([connect, disconnect])
      await webhooks.dispatch([connect.id], [])
      expect(await eventsOf(connect.tunnel)).toEqual([disconnect])
    })

    test('makes one event of a session’s disconnect, whichever of its records come and when', async () => {
      const { journal, webhooks } = opened()
      const connect = connectionRecord({ tunnel: newTunnel() })
      const lost = ended(connect, { reason: 'edge_lost' })
      await journal.connection(connect)
      await journal.connection(lost)
      await webhooks.dispatch([connect.id, lost.id], [])
      await journal.connection(ended(connect))
      await journal.connection(connect)
      expect(await eventsOf(connect.tunnel)).toEqual([])
    })

    test('notifies its listeners of an event and of an added delivery', async () => {
      const { journal, webhooks } = opened()
      let calls = 0
      const stop = webhooks.onWork(() => (calls += 1))
      await journal.connection(connectionRecord({ tunnel: newTunnel() }))
      await expect.poll(() => calls).toBeGreaterThan(0)
      const before = calls
      await webhooks.add(deliveryOf({ manual: true }))
      await expect.poll(() => calls).toBeGreaterThan(before)
      stop()
    })

    test('adds the deliveries of an event once', async () => {
      const delivery = deliveryOf()
      await dispatched([delivery])
      await opened().webhooks.dispatch([delivery.event], [{ ...delivery, id: randomUUIDv7() }])
      const pending = { ...delivery, attempt: 0, status: 'pending', nextAt: delivery.at }
      const untried = { requestedAt: null, responseStatus: null, durationMs: null, responseBody: null, error: null }
      expect(await opened().webhooks.list(delivery.webhook, { limit: 10 })).toEqual([{ ...pending, ...untried }])
    })

    test('offers a delivery when its time has come, until it has finished', async () => {
      const delivery = deliveryOf()
      const { webhook } = delivery
      await dispatched([delivery])
      expect(await due(webhook, { now: delivery.at - 1 })).toEqual([])
      const { nextAt } = await opened().webhooks.due({ now: delivery.at - 1, limit: 1, perWebhook: 1, busy: [], underWay: [] })
      expect(nextAt).toBeLessThanOrEqual(delivery.at)
      expect(await due(webhook)).toMatchObject([{ id: delivery.id, attempt: 0 }])
      expect(await due(webhook, { busy: [webhook] })).toEqual([])
      expect(await due(webhook, { underWay: [delivery.id] })).toEqual([])
      const nextTime = Date.now() + MINUTE
      await opened().webhooks.finish(failed(delivery, { nextAt: nextTime }))
      expect(await due(webhook)).toEqual([])
      expect(await due(webhook, { now: nextTime })).toMatchObject([{ attempt: 1, status: 'pending', error: 'status 500' }])
      await opened().webhooks.finish(attemptOf(delivery, { attempt: 2 }))
      expect(await due(webhook, { now: nextTime })).toEqual([])
      const result = { attempt: 2, status: 'delivered', nextAt: null, requestedAt: 17, responseStatus: 200, durationMs: 2.5 }
      expect(await opened().webhooks.find(webhook, delivery.id)).toMatchObject({ ...result, responseBody: 'ok', error: null })
    })

    test('offers a later delivery of a session after the first attempt of the earlier one, and other sessions meanwhile', async () => {
      const webhook = randomUUID()
      const [session, event] = [randomUUID(), randomUUIDv7()]
      const second = deliveryOf({ webhook, event, session, sequence: 2 })
      const first = deliveryOf({ webhook, event, session, sequence: 1 })
      const other = deliveryOf({ webhook, event, session: randomUUID() })
      await dispatched([second, first, other])
      const ids = async () => (await due(webhook)).map(({ id }) => id).sort()
      expect(await ids()).toEqual([first.id, other.id].sort())
      await opened().webhooks.finish(failed(first, { attempt: 0 }))
      expect(await ids()).toEqual([other.id])
      await opened().webhooks.finish(failed(first))
      expect(await ids()).toEqual([second.id, other.id].sort())
    })

    test('offers at most so many deliveries of one webhook', async () => {
      const [one, two] = [randomUUID(), randomUUID()]
      const event = randomUUIDv7()
      const of = (webhook: string) => Array.from({ length: 5 }, () => deliveryOf({ webhook, event, session: randomUUID() }))
      await dispatched([...of(one), ...of(two)])
      expect(await due(one, { perWebhook: 2 })).toHaveLength(2)
      expect(await due(two, { perWebhook: 2 })).toHaveLength(2)
    })

    test('counts failures in a row; a success and forgiveness end them', async () => {
      const { webhooks } = opened()
      const delivery = deliveryOf()
      await dispatched([delivery])
      expect(await webhooks.finish(failed(delivery, { at: 1_000 }))).toEqual({ failures: 1, since: 1_000 })
      expect(await webhooks.finish(failed(delivery, { at: 2_000 }))).toEqual({ failures: 2, since: 1_000 })
      expect(await webhooks.finish(failed(delivery, { counts: false }))).toBeUndefined()
      await webhooks.forgive(delivery.webhook)
      expect(await webhooks.finish(failed(delivery, { at: 4_000 }))).toEqual({ failures: 1, since: 4_000 })
      const other = deliveryOf({ webhook: delivery.webhook })
      await dispatched([other])
      expect(await webhooks.finish(attemptOf(other))).toBeUndefined()
      expect(await webhooks.finish(failed(delivery, { at: 5_000 }))).toEqual({ failures: 1, since: 5_000 })
    })

    test('abandons pending deliveries, those that a person asked for only on request', async () => {
      const { webhooks } = opened()
      const webhook = randomUUID()
      const manual = deliveryOf({ webhook, manual: true })
      await dispatched([deliveryOf({ webhook })])
      await webhooks.add(manual)
      await webhooks.abandon(webhook, 'disabled', { manual: false })
      expect((await due(webhook)).map(({ id }) => id)).toEqual([manual.id])
      await webhooks.abandon(webhook, 'deleted', { manual: true })
      expect(await due(webhook)).toEqual([])
      expect((await webhooks.list(webhook, { limit: 5 })).map(({ error }) => error).sort()).toEqual(['deleted', 'disabled'])
    })

    test('lists the deliveries of a webhook in pages, newest first', async () => {
      const { webhooks } = opened()
      const webhook = randomUUID()
      const all = Array.from({ length: 5 }, (_, index) => deliveryOf({ webhook, at: Date.now() + index, session: randomUUID() }))
      await dispatched(all)
      const ids = all.map(({ id }) => id).reverse()
      const page = async (before?: string) => (await webhooks.list(webhook, { limit: 2, before })).map(({ id }) => id)
      expect(await page()).toEqual(ids.slice(0, 2))
      expect(await page(ids[1])).toEqual(ids.slice(2, 4))
      expect(await webhooks.find(randomUUID(), ids[0] ?? '')).toBeUndefined()
      expect(await webhooks.find(webhook, 'no id')).toBeUndefined()
    })

    test('keeps so many deliveries of a webhook, and all pending ones', async () => {
      const { webhooks } = opened()
      const webhook = randomUUID()
      const event = randomUUIDv7()
      const all = Array.from({ length: KEPT_MAX + 5 }, () => deliveryOf({ webhook, event, session: randomUUID() }))
      await dispatched(all)
      await webhooks.abandon(webhook, 'over', { manual: true })
      const added = deliveryOf({ webhook, manual: true })
      await webhooks.add(added)
      const kept = (await webhooks.list(webhook, { limit: 2 * KEPT_MAX })).map(({ id }) => id)
      expect(kept).toEqual([
        added.id,
        ...all
          .slice(6)
          .map(({ id }) => id)
          .reverse(),
      ])
    })

    test('fails the oldest deliveries when too many are pending', async () => {
      const { webhooks } = opened()
      const webhook = randomUUID()
      const event = randomUUIDv7()
      const all = Array.from({ length: PENDING_MAX + 2 }, () => deliveryOf({ webhook, event, session: randomUUID(), body: '{}' }))
      await dispatched(all)
      const oldest = await Promise.all(all.slice(0, 3).map(({ id }) => webhooks.find(webhook, id)))
      expect(oldest.map((delivery) => delivery?.error)).toEqual([TOO_MANY_PENDING, TOO_MANY_PENDING, null])
      await webhooks.abandon(webhook, 'over', { manual: true })
    })
  })
}
