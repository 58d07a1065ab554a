import { z } from 'zod'
import { TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import { type AnyRoute, fixedFields, route } from '../http/route.ts'
import { settled, untilGone } from '../resources/cache-waits.ts'
import { changeSpec, requestDeletion } from '../resources/conditional-writes.ts'
import { requireTunnelNotDeleting } from '../tunnels/tunnel-lookup.ts'
import { checkUrl, PatchWebhookBody } from './webhook-body.ts'
import { WEBHOOK_PATH, type WebhookDeps, WebhookParams } from './webhook-deps.ts'
import { WebhookData, WebhookView, webhookView } from './webhook-view.ts'

const FIXED = fixedFields(WebhookView, PatchWebhookBody, { secret: 'POST …/rotate-secret replaces it' })

/** `PATCH …/webhooks/{id}` */
export function patchWebhook(deps: WebhookDeps): AnyRoute {
  const { store, tunnelWebhooks, audit, find, readsSecrets } = deps
  return route({
    method: 'patch',
    path: WEBHOOK_PATH,
    on: ['shared'],
    id: 'patchWebhook',
    summary: 'Change the URL or the events of a webhook, disable it, or enable it again.',
    description: 'A JSON merge patch (RFC 7396): null restores a default. A patch without a change writes nothing.',
    conditional: true,
    params: WebhookParams,
    body: PatchWebhookBody,
    fixed: FIXED,
    checkBody: checkUrl(() => deps.addressGuard),
    replies: { 200: WebhookData },
    async handle({ principal, params, body, ifMatch, requestId, sourceIp }) {
      const { tunnel, scope, webhook: found } = await find(principal, params, 'patch')
      requireTunnelNotDeleting(tunnel)
      const { before, after, isChanged } = await changeSpec(store, TunnelWebhook, { found, ifMatch, specOf: () => ({ ...body }) })
      if (isChanged) await audit.record({ principal, requestId, sourceIp, action: 'update', before, after })
      const shown = await settled(tunnelWebhooks, after)
      const view = webhookView(shown, await readsSecrets(principal, scope))
      return { status: 200, data: { webhook: view }, etag: shown.metadata.resourceVersion }
    },
  })
}

/** `DELETE …/webhooks/{id}`: pending deliveries of the webhook fail. */
export function deleteWebhook({ store, tunnelWebhooks, audit, find }: WebhookDeps): AnyRoute {
  return route({
    method: 'delete',
    path: WEBHOOK_PATH,
    on: ['shared'],
    id: 'deleteWebhook',
    summary: 'Delete a webhook; its pending deliveries end.',
    conditional: true,
    params: WebhookParams,
    replies: { 200: z.object({}) },
    async handle({ principal, params, ifMatch, requestId, sourceIp }) {
      const { webhook } = await find(principal, params, 'delete')
      if (await requestDeletion(store, TunnelWebhook, webhook, ifMatch)) {
        await audit.record({ principal, requestId, sourceIp, action: 'delete', before: webhook })
      }
      await untilGone(tunnelWebhooks, webhook)
      return { status: 200, data: {} }
    },
  })
}

/** `POST …/webhooks/{id}/rotate-secret`: for a day, deliveries are signed with the new and the former secret. */
export function rotateWebhookSecret(deps: WebhookDeps): AnyRoute {
  const { store, tunnelWebhooks, audit, secrets, find, readsSecrets } = deps
  return route({
    method: 'post',
    path: `${WEBHOOK_PATH}/rotate-secret`,
    on: ['shared'],
    id: 'rotateWebhookSecret',
    summary: 'Replace the signing secret of a webhook; for a day, deliveries are signed by both.',
    params: WebhookParams,
    replies: { 200: WebhookData },
    async handle({ principal, params, requestId, sourceIp }) {
      const { tunnel, scope, webhook: found } = await find(principal, params, 'patch')
      requireTunnelNotDeleting(tunnel)
      const specOf = ({ spec }: TunnelWebhook) => ({ secretVersion: spec.secretVersion + 1 })
      const { before, after } = await changeSpec(store, TunnelWebhook, { found, specOf })
      await audit.record({ principal, requestId, sourceIp, action: 'update', before, after })
      const secret = secrets(after.metadata.uid, after.spec.secretVersion)
      const shown = await settled(tunnelWebhooks, after)
      const view = webhookView(shown, await readsSecrets(principal, scope))
      return { status: 200, data: { webhook: { ...view, secret } }, etag: shown.metadata.resourceVersion }
    },
  })
}
