import { randomUUIDv7 } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'
import type { DeliveryLog, DeliveryRecord, NewDelivery } from '../../journal/webhooks.ts'
import { messageBody, TEST_EVENT } from '../../shared/webhook-message.ts'
import { ApiError } from '../http/errors.ts'
import { PageQuery } from '../http/paging.ts'
import { type AnyRoute, route } from '../http/route.ts'
import { journalPage, pageOf } from '../journal/journal-schemas.ts'
import { idParam, listOf } from '../tenancy/tenancy-deps.ts'
import { WEBHOOK_PATH, type WebhookDeps, WebhookParams } from './webhook-deps.ts'
import { DeliveryData, DeliveryView, deliveryView } from './webhook-view.ts'

const DELIVERIES_PATH = `${WEBHOOK_PATH}/deliveries`

/** `GET …/webhooks/{id}/deliveries`: newest first. */
export function listDeliveries({ journal, find, readsSecrets }: WebhookDeps): AnyRoute {
  return route({
    method: 'get',
    path: DELIVERIES_PATH,
    on: ['shared'],
    id: 'listWebhookDeliveries',
    summary: 'List the deliveries of a webhook, each with its last attempt.',
    params: WebhookParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('deliveries', DeliveryView) },
    async handle({ principal, params, query }) {
      const { webhook, scope } = await find(principal, params, 'list')
      const [records, isOpen] = await Promise.all([
        journal.webhooks.list(webhook.metadata.uid, journalPage(query)),
        readsSecrets(principal, scope),
      ])
      const { shown, nextCursor } = pageOf(records, query.limit)
      return { status: 200, data: { deliveries: shown.map((record) => deliveryView(record, isOpen)), nextCursor } }
    },
  })
}

/** Returns a new delivery as a record without an attempt. */
const untried = (delivery: NewDelivery): DeliveryRecord => ({
  ...delivery,
  attempt: 0,
  status: 'pending',
  nextAt: delivery.at,
  requestedAt: null,
  responseStatus: null,
  durationMs: null,
  responseBody: null,
  error: null,
})

/** Maximum wait for the result of a test, in milliseconds: an attempt takes at most 10 s. */
const RESULT_MS = 11_000
/** Pauses between reads of the result, in milliseconds; the last one repeats. */
const PAUSES_MS = [20, 50, 100, 250]

/** Returns a delivery with its result; undefined when it has none in time. */
async function resultOf(log: DeliveryLog, { webhook, id }: NewDelivery): Promise<DeliveryRecord | undefined> {
  const until = performance.now() + RESULT_MS
  for (let read = 0; performance.now() < until; read++) {
    await setTimeout(PAUSES_MS[read] ?? PAUSES_MS.at(-1))
    const record = await log.find(webhook, id)
    if (record && record.status !== 'pending') return record
  }
  return undefined
}

/**
 * `POST …/webhooks/{id}/test`: adds the delivery of a `tunnel.test`, and waits for its result. It is attempted once, whether the webhook is
 * enabled or not.
 */
export function testWebhook({ journal, now, find, readsSecrets }: WebhookDeps): AnyRoute {
  return route({
    method: 'post',
    path: `${WEBHOOK_PATH}/test`,
    on: ['shared'],
    id: 'testWebhook',
    summary: 'Deliver a test event to a webhook and return the result; the delivery is attempted once.',
    description: 'The status is 202, and the delivery is pending, when the attempt has no result in 11 s.',
    params: WebhookParams,
    replies: { 200: DeliveryData, 202: DeliveryData },
    async handle({ principal, params }) {
      const { tunnel, scope, webhook } = await find(principal, params, 'patch')
      const at = now().getTime()
      const event = randomUUIDv7()
      const { organization, slug: namespace } = scope
      const delivery: NewDelivery = {
        id: randomUUIDv7(),
        webhook: webhook.metadata.uid,
        event,
        type: TEST_EVENT,
        session: null,
        sequence: 0,
        at,
        manual: true,
        body: messageBody({ id: event, type: TEST_EVENT, at, tunnel, organization, namespace, sequence: 0 }),
      }
      await journal.webhooks.add(delivery)
      const [result, isOpen] = await Promise.all([resultOf(journal.webhooks, delivery), readsSecrets(principal, scope)])
      return { status: result ? 200 : 202, data: { delivery: deliveryView(result ?? untried(delivery), isOpen) } }
    },
  })
}

const DeliveryParams = z.object({ ...WebhookParams.shape, delivery: idParam('Id of the delivery.') })

/** `POST …/deliveries/{d}/redeliver`: adds a new delivery of the same event, with the same `eventId`. It is attempted once. */
export function redeliver({ journal, now, find }: WebhookDeps): AnyRoute {
  return route({
    method: 'post',
    path: `${DELIVERIES_PATH}/{delivery}/redeliver`,
    on: ['shared'],
    id: 'redeliverWebhook',
    summary: 'Deliver an event to a webhook again, under the same event id; the delivery is attempted once.',
    params: DeliveryParams,
    replies: { 202: DeliveryData },
    async handle({ principal, params }) {
      const { webhook } = await find(principal, params, 'patch')
      const former = await journal.webhooks.find(webhook.metadata.uid, params.delivery.toLowerCase())
      if (!former) throw new ApiError('not_found', 'this webhook has no delivery with this id')
      const { event, type, body, sequence } = former
      const about = { webhook: former.webhook, event, type, body, sequence }
      const delivery = { ...about, id: randomUUIDv7(), session: null, at: now().getTime(), manual: true }
      await journal.webhooks.add(delivery)
      return { status: 202, data: { delivery: deliveryView(untried(delivery), true) } }
    },
  })
}
