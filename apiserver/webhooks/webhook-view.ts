import { z } from 'zod'
import { DISABLED_REASONS, type TunnelWebhook, WEBHOOK_EVENTS } from '../../crds/tunnel-webhook.ts'
import type { DeliveryRecord } from '../../journal/webhooks.ts'
import { disabledReasonOf } from '../../shared/active-webhooks.ts'
import { createdAtOf } from '../resources/names-and-times.ts'

export const WebhookView = z
  .object({
    id: z.uuid(),
    url: z.string(),
    events: z.array(z.enum(WEBHOOK_EVENTS)),
    enabled: z.boolean(),
    disabledReason: z
      .enum(DISABLED_REASONS)
      .nullable()
      .describe(
        'Reason why Mooring disabled the webhook: the receiver answered 410, or 20 attempts in a row failed over 3 days.',
      ),
    createdAt: z.iso.datetime(),
    secret: z.string().optional().describe('Signing secret; only in the answers to the creation and to rotate-secret.'),
  })
  .meta({ id: 'Webhook' })
export type WebhookView = z.output<typeof WebhookView>
export const WebhookData = z.object({ webhook: WebhookView })

export function webhookView(webhook: TunnelWebhook): WebhookView {
  const { metadata, spec } = webhook
  const disabledReason = disabledReasonOf(webhook) ?? null
  return {
    id: metadata.uid,
    url: spec.url,
    events: [...spec.events],
    enabled: spec.enabled && disabledReason === null,
    disabledReason,
    createdAt: createdAtOf(metadata),
  }
}

const Time = z.iso.datetime().nullable()

export const DeliveryView = z
  .object({
    id: z.uuid(),
    eventId: z.string().describe('Header webhook-id; the same for every attempt and redelivery of an event.'),
    type: z.string(),
    attempt: z.int().min(0).describe('Number of attempts so far.'),
    status: z.enum(['pending', 'delivered', 'failed']),
    createdAt: z.iso.datetime(),
    requestBody: z.string(),
    requestedAt: Time.describe('Time of the last attempt.'),
    responseStatus: z.int().nullable(),
    durationMs: z.number().nullable(),
    responseBody: z.string().nullable().describe('First 1,024 bytes of the response body.'),
    error: z.string().nullable(),
    nextAttemptAt: Time,
  })
  .meta({ id: 'WebhookDelivery' })
export const DeliveryData = z.object({ delivery: DeliveryView })

const timeOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

export function deliveryView(record: DeliveryRecord): z.output<typeof DeliveryView> {
  const { id, event, type, attempt, status, at, body, requestedAt, responseStatus, durationMs, responseBody, error } = record
  return {
    ...{ id, eventId: event, type, attempt, status, createdAt: new Date(at).toISOString(), requestBody: body },
    ...{ requestedAt: timeOf(requestedAt), responseStatus, durationMs, responseBody, error },
    nextAttemptAt: timeOf(record.nextAt),
  }
}
