import { z } from 'zod'
import { type Fields } from '../../crds/formats/fields.ts'
import { WEBHOOK_PORT_RULE, WEBHOOK_URL, WEBHOOK_URL_MAX, WEBHOOK_URL_RULE } from '../../crds/formats/webhook-url.ts'
import { TunnelWebhookSpec, WEBHOOK_EVENTS } from '../../crds/tunnel-webhook.ts'
import { ruleMessage } from '../../shared/field-errors.ts'
import { ADDRESS_RULE, type AddressGuard } from '../../shared/outside-addresses.ts'
import type { BodyCheck } from '../http/route.ts'

const { shape } = TunnelWebhookSpec

const Url = z
  .string(ruleMessage(WEBHOOK_URL_RULE))
  .max(WEBHOOK_URL_MAX, `must be at most ${WEBHOOK_URL_MAX} characters`)
  .regex(WEBHOOK_URL, WEBHOOK_URL_RULE)
  .describe(shape.url.description ?? '')

/** Body of `POST …/webhooks`. */
export const CreateWebhookBody = z
  .object({
    url: Url,
    events: shape.events.unwrap().optional().describe('Events to deliver; default: all.'),
    enabled: z.boolean().optional().describe('Whether events are delivered; default: true.'),
  })
  .meta({ id: 'CreateWebhook', examples: [{ url: 'https://example.com/hook', events: [...WEBHOOK_EVENTS] }] })

/** Body of `PATCH …/webhooks/{id}`: a JSON merge patch (RFC 7396); an empty one changes nothing. */
export const PatchWebhookBody = z
  .object({
    url: Url.optional(),
    events: shape.events.unwrap().nullish().describe('Events to deliver; null: all.'),
    enabled: z
      .boolean()
      .nullish()
      .describe('Whether events are delivered; null: true. True also enables a webhook that Mooring disabled.'),
  })
  .meta({ id: 'PatchWebhook', examples: [{ enabled: false }] })

/** Creates the check of a URL's host and port, which no schema can express. */
export function checkUrl(guardOf: () => AddressGuard): BodyCheck {
  return (body, named) => {
    const { url } = body as Fields
    if (typeof url !== 'string' || named.has('url')) return []
    const parsed = URL.parse(url)
    if (!parsed || !WEBHOOK_PORT_RULE.holds(url)) return [{ field: 'url', message: WEBHOOK_PORT_RULE.message }]
    return guardOf().allowsUrl(parsed) ? [] : [{ field: 'url', message: ADDRESS_RULE }]
  }
}
