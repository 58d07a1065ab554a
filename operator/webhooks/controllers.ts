import type { Tunnel } from '../../crds/tunnel.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf, keyToString, type Key } from '../../store/port.ts'
import type { Controller, ControllerDeps } from '../runtime/controller.ts'
import { aspectChangesOf, changesOf, objectsOf } from '../runtime/source.ts'
import { createWebhookReconciler, type WebhookReconcilerDeps } from './reconciler.ts'

export interface WebhookControllerDeps extends WebhookReconcilerDeps {
  readonly tunnels: Cache<typeof Tunnel>
  readonly controller: (about: Pick<ControllerDeps, 'name' | 'concurrency' | 'reconcile' | 'sources' | 'onFailure'>) => Controller
  readonly onFailure: ControllerDeps['onFailure']
}

/** Creates the controller of webhooks. */
export function createWebhookController({ controller, onFailure, ...deps }: WebhookControllerDeps): Controller {
  const { tunnels, webhooks } = deps
  const webhooksOf = (tunnel: Key): readonly Key[] => webhooks.byIndex('tunnel', keyToString(tunnel)).map(keyOf)
  /** Returns the webhooks that may become active because another one was deleted. */
  const afterDeletion = (key: Key): readonly Key[] => {
    const webhook = webhooks.get(key)
    if (webhook && webhook.metadata.deletionTimestamp === undefined) return []
    return webhooks.byIndex('tooMany', key.namespace ?? '').map(keyOf)
  }
  return controller({
    name: 'tunnel-webhook',
    concurrency: 4,
    onFailure,
    reconcile: createWebhookReconciler(deps),
    sources: [
      objectsOf(webhooks),
      changesOf(webhooks, afterDeletion),
      aspectChangesOf(tunnels, ({ metadata }) => metadata.uid, webhooksOf),
    ],
  })
}
