import { type TunnelWebhook, WebhookReason } from '../../crds/tunnel-webhook.ts'
import { tunnelOfWebhook } from '../../shared/active-webhooks.ts'
import { conditionOf } from '../../store/conditions.ts'
import { keyToString } from '../../store/port.ts'

/** Indexes of the cache of webhooks. */
export const webhookIndexes = {
  /** Webhooks that name a tunnel. */
  tunnel: (webhook: TunnelWebhook) => [keyToString(tunnelOfWebhook(webhook))],
  /** Namespace of a webhook that is inactive until an older one is deleted. */
  tooMany: (webhook: TunnelWebhook) =>
    conditionOf(webhook, 'Ready')?.reason === WebhookReason.TooManyWebhooks ? [webhook.metadata.namespace ?? ''] : [],
}
