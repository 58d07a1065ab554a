import { ownerReferenceTo } from '../../crds/kind.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelWebhook, WebhookReason } from '../../crds/tunnel-webhook.ts'
import type { WebhookOutbox } from '../../journal/webhooks.ts'
import { disabledReasonOf, isWebhookOf, tunnelOfWebhook, type WebhookState, webhookState } from '../../shared/active-webhooks.ts'
import { tunnelOwnersOf } from '../../shared/live-passwords.ts'
import type { AddressGuard } from '../../shared/outside-addresses.ts'
import { SECRET_OVERLAP_MS, type WebhookSecrets } from '../../shared/webhook-secrets.ts'
import type { Cache } from '../../store/cache.ts'
import { type Decision, notReady, ready } from '../../store/conditions.ts'
import { ignoringGone, keyOf, keyToString, type Key, type Patch, type Store } from '../../store/port.ts'
import type { Report, StatusFields } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'
import { keepTenantSecret } from './tenant-secret.ts'

export interface WebhookReconcilerDeps {
  readonly store: Store
  readonly tunnels: Cache<typeof Tunnel>
  /** Webhooks, with the indexes of indexes.ts. */
  readonly webhooks: Cache<typeof TunnelWebhook>
  readonly outbox: Pick<WebhookOutbox, 'forgive'>
  readonly guard: AddressGuard
  readonly secrets: WebhookSecrets
  readonly report: Report
  readonly now: () => Date
}

/**
 * Creates the reconciler of webhooks. It sets the tunnel as owner of a webhook, reports whether the webhook is active, follows rotations of the
 * signing secret, and writes that secret into a Secret in the same namespace when the REST API did not create the webhook.
 */
export function createWebhookReconciler(deps: WebhookReconcilerDeps) {
  const { store, tunnels, webhooks, outbox, guard, secrets, report, now } = deps

  return async function reconcileWebhook(key: Key): Promise<Outcome> {
    const found = webhooks.get(key)
    if (!found || found.metadata.deletionTimestamp !== undefined) return { result: 'settled', reason: 'Gone' }
    const tunnelKey = tunnelOfWebhook(found)
    const tunnel = tunnels.get(tunnelKey)
    const webhook = await patched(found, adoption(found, tunnel) ?? disabling(found))
    if (!webhook) return { result: 'settled', reason: 'Gone' }
    return reportState(webhook, tunnel)
  }

  async function reportState(webhook: TunnelWebhook, tunnel: Tunnel | undefined): Promise<Outcome> {
    const named = webhooks.byIndex('tunnel', keyToString(tunnelOfWebhook(webhook)))
    const isEnabledAgain = webhook.status?.disabledReason !== undefined && disabledReasonOf(webhook) === undefined
    if (isEnabledAgain) await outbox.forgive(webhook.metadata.uid)
    const secretRef = await keepTenantSecret(store, webhook, secrets)
    const state = webhookState({ webhook, tunnel, named, guard })
    const rotation = rotationOf(webhook, now().getTime())
    await report(TunnelWebhook, webhook, decisionOf(state, secretRef === 'taken'), {
      ...rotation.fields,
      ...(isEnabledAgain && { disabledReason: null, disabledGeneration: null }),
      ...(secretRef !== 'taken' && { secretRef }),
    })
    return { result: 'settled', reason: state.reason, requeueAfterMs: rotation.endsInMs }
  }

  /** Applies a patch to a webhook. Returns the webhook; undefined when it was deleted. */
  async function patched(webhook: TunnelWebhook, patch: Patch | undefined): Promise<TunnelWebhook | undefined> {
    if (!patch) return webhook
    const { uid, resourceVersion } = webhook.metadata
    return ignoringGone(store.mergePatch(TunnelWebhook, keyOf(webhook), patch, { uid, resourceVersion }))
  }
}

function decisionOf({ isActive, reason, message }: WebhookState, isSecretTaken: boolean): Decision {
  if (!isActive) return notReady(reason, message)
  if (!isSecretTaken) return ready(reason, message)
  return notReady(
    WebhookReason.SecretNameTaken,
    'a Secret of another owner has the name of this webhook’s Secret; delete that Secret',
  )
}

/** Returns the patch that makes the tunnel the owner of a webhook made with kubectl, so that the webhook is deleted with the tunnel. Pure. */
function adoption(webhook: TunnelWebhook, tunnel: Tunnel | undefined): Patch | undefined {
  const { ownerReferences = [] } = webhook.metadata
  if (!tunnel || tunnelOwnersOf(webhook.metadata).length > 0 || !isWebhookOf(webhook, tunnel)) return undefined
  return { metadata: { ownerReferences: [...ownerReferences, ownerReferenceTo(Tunnel, tunnel)] } }
}

/**
 * Returns the patch that sets `spec.enabled` of a disabled webhook to false. Setting it to true is then a change of the spec, which enables the
 * webhook again. Pure.
 */
function disabling(webhook: TunnelWebhook): Patch | undefined {
  return webhook.spec.enabled && disabledReasonOf(webhook) !== undefined ? { spec: { enabled: false } } : undefined
}

interface Rotation {
  readonly fields: StatusFields<typeof TunnelWebhook>
  /** Time in milliseconds until the former secret stops signing; undefined without a former secret. */
  readonly endsInMs: number | undefined
}

/** Returns the fields of the status about the secret. After a rotation the former version signs for a day. Pure. */
export function rotationOf({ spec, status }: TunnelWebhook, at: number): Rotation {
  const { secretVersion } = spec
  if (status?.secretVersion !== undefined && status.secretVersion !== secretVersion) {
    const until = new Date(at + SECRET_OVERLAP_MS).toISOString()
    const fields = { secretVersion, previousSecretVersion: status.secretVersion, previousSecretUntil: until }
    return { fields, endsInMs: SECRET_OVERLAP_MS }
  }
  const left = Date.parse(status?.previousSecretUntil ?? '') - at
  if (left > 0) return { fields: { secretVersion }, endsInMs: left }
  return { fields: { secretVersion, previousSecretVersion: null, previousSecretUntil: null }, endsInMs: undefined }
}
