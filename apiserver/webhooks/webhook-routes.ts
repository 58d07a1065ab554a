import { z } from 'zod'
import { page, PageQuery, resourceKey } from '../http/paging.ts'
import { type AnyRoute, route } from '../http/route.ts'
import { listOf } from '../tenancy/tenancy-deps.ts'
import { TunnelParams } from '../tunnels/tunnel-lookup.ts'
import { deleteWebhook, patchWebhook, rotateWebhookSecret } from './change-webhook.ts'
import { createWebhook } from './create-webhook.ts'
import { listDeliveries, redeliver, testWebhook } from './deliveries.ts'
import {
  createWebhookDeps,
  WEBHOOK_PATH,
  type WebhookDeps,
  WebhookParams,
  WEBHOOKS_PATH,
  type WebhookWiring,
} from './webhook-deps.ts'
import { WebhookData, WebhookView, webhookView } from './webhook-view.ts'

const ROUTES = [
  ...[listWebhooks, createWebhook, getWebhook, patchWebhook, deleteWebhook],
  ...[rotateWebhookSecret, testWebhook, listDeliveries, redeliver],
]

/** Returns the routes of webhooks (docs/webhooks.md). */
export function webhookRoutes(wiring: WebhookWiring): AnyRoute[] {
  const deps = createWebhookDeps(wiring)
  return ROUTES.map((make) => make(deps))
}

/** `GET …/tunnels/{t}/webhooks`: newest first. */
function listWebhooks({ findTunnel, webhooksOf, readsSecrets }: WebhookDeps): AnyRoute {
  return route({
    method: 'get',
    path: WEBHOOKS_PATH,
    on: ['shared'],
    id: 'listWebhooks',
    summary: 'List the webhooks of a tunnel.',
    params: TunnelParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('webhooks', WebhookView) },
    async handle({ principal, params, query }) {
      const { tunnel, scope } = await findTunnel(principal, params, 'list')
      const isOpen = await readsSecrets(principal, scope)
      const { items, nextCursor } = page(webhooksOf(tunnel), query, resourceKey)
      return { status: 200, data: { webhooks: items.map((webhook) => webhookView(webhook, isOpen)), nextCursor } }
    },
  })
}

/** `GET …/webhooks/{id}` */
function getWebhook({ find, readsSecrets }: WebhookDeps): AnyRoute {
  return route({
    method: 'get',
    path: WEBHOOK_PATH,
    on: ['shared'],
    id: 'getWebhook',
    summary: 'Get one webhook.',
    params: WebhookParams,
    replies: { 200: WebhookData },
    async handle({ principal, params }) {
      const { webhook, scope } = await find(principal, params, 'get')
      const view = webhookView(webhook, await readsSecrets(principal, scope))
      return { status: 200, data: { webhook: view }, etag: webhook.metadata.resourceVersion }
    },
  })
}
