import { ownerReferenceTo } from '../../crds/kind.ts'
import { annotations } from '../../crds/names.ts'
import { TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { ApiError } from '../http/errors.ts'
import { type AnyRoute, route } from '../http/route.ts'
import { rejectWhenDeleted, settled, untilKnown } from '../resources/cache-waits.ts'
import { createOnce, objectName, requestHash } from '../resources/creations.ts'
import { createdNow } from '../resources/names-and-times.ts'
import { requireTunnelNotDeleting, TunnelParams } from '../tunnels/tunnel-lookup.ts'
import { checkUrl, CreateWebhookBody } from './webhook-body.ts'
import { type WebhookDeps, WEBHOOKS_PATH } from './webhook-deps.ts'
import { WebhookData, webhookView } from './webhook-view.ts'

/** Version of the secret of a new webhook. */
const FIRST_VERSION = 1

/** `POST …/tunnels/{t}/webhooks`: only this response, and its repetition with the same Idempotency-Key, contains the first secret. */
export function createWebhook(deps: WebhookDeps): AnyRoute {
  const { store, tunnels, tunnelWebhooks, secrets, quota, audit, now, findTunnel, readsSecrets } = deps
  return route({
    method: 'post',
    path: WEBHOOKS_PATH,
    on: ['shared'],
    id: 'createWebhook',
    summary: 'Create a webhook: a URL that is notified when clients connect to a tunnel and disconnect.',
    params: TunnelParams,
    body: CreateWebhookBody,
    checkBody: checkUrl(() => deps.addressGuard),
    idempotent: true,
    replies: { 201: WebhookData },
    async handle({ principal, params, body, idempotencyKey: key, requestId, sourceIp }) {
      const { tunnel, scope } = await findTunnel(principal, params, 'create')
      requireTunnelNotDeleting(tunnel)
      const { namespace } = scope
      const { uid } = tunnel.metadata
      const owner = { namespace, user: principal.user, key: key === undefined ? undefined : `${uid} ${key}` }
      const name = objectName('w', owner)
      using reservations = new DisposableStack()
      reservations.use(quota.reserve({ namespace: uid, name }))
      const draft = {
        metadata: {
          namespace,
          name,
          annotations: { [annotations.createdBy]: principal.user, ...createdNow(now()) },
          ownerReferences: [ownerReferenceTo(Tunnel, tunnel)],
        },
        spec: { tunnelRef: { name: tunnel.metadata.name }, ...body },
      }
      const { object, created } = await createOnce(store, TunnelWebhook, draft, requestHash(body))
      if (created) await audit.record({ principal, requestId, sourceIp, action: 'create', after: object })
      await untilKnown(tunnelWebhooks, object, rejectWhenDeleted(tunnels, tunnel, 'the tunnel was deleted meanwhile'))
      if (object.spec.secretVersion !== FIRST_VERSION)
        throw new ApiError('conflict', 'the secret of this webhook was replaced; rotate it again to get one')
      const secret = secrets(object.metadata.uid, FIRST_VERSION)
      // Waits at most 2 s until the operator knows the webhook. From then on events are delivered to it.
      const shown = await settled(tunnelWebhooks, object)
      const view = webhookView(shown, await readsSecrets(principal, scope))
      return { status: 201, data: { webhook: { ...view, secret } }, etag: shown.metadata.resourceVersion }
    },
  })
}
