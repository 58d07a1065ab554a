import { z } from 'zod'
import { DISABLED_REASONS, type TunnelWebhook, WEBHOOK_EVENTS } from '../../crds/tunnel-webhook.ts'
import type { DeliveryRecord } from '../../journal/webhooks.ts'
import { originOf } from '../../crds/formats/webhook-url.ts'
import { disabledReasonOf } from '../../shared/active-webhooks.ts'
import { createdAtOf } from '../resources/names-and-times.ts'

export const WebhookView = z
  .object({
    id: z.uuid(),
    url: z
      .string()
      .describe('URL of the receiver. A URL can be a credential: callers who may not read secrets get scheme and host alone.'),
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

/** Renders a webhook. `readsSecrets`: whether the caller has the right to read secrets. */
export function webhookView(webhook: TunnelWebhook, readsSecrets: boolean): WebhookView {
  const { metadata, spec } = webhook
  const disabledReason = disabledReasonOf(webhook) ?? null
  return {
    id: metadata.uid,
    url: readsSecrets ? spec.url : originOf(spec.url),
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
    responseBody: z
      .string()
      .nullable()
      .describe('First 1,024 bytes of the response body; null for callers who may not read secrets.'),
    error: z.string().nullable(),
    nextAttemptAt: Time,
  })
  .meta({ id: 'WebhookDelivery' })
export const DeliveryData = z.object({ delivery: DeliveryView })

const timeOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

/** Renders a delivery. A response may have secrets in it, or content of a network that its reader cannot reach. */
export function deliveryView(record: DeliveryRecord, readsSecrets: boolean): z.output<typeof DeliveryView> {
  const { id, event, type, attempt, status, at, body, requestedAt, responseStatus, durationMs, responseBody, error } = record
  return {
    id,
    eventId: event,
    type,
    attempt,
    status,
    createdAt: new Date(at).toISOString(),
    requestBody: body,
    requestedAt: timeOf(requestedAt),
    responseStatus,
    durationMs,
    error,
    responseBody: readsSecrets ? responseBody : null,
    nextAttemptAt: timeOf(record.nextAt),
  }
}
