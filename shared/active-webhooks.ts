import { WEBHOOK_PORT_RULE } from '../crds/formats/webhook-url.ts'
import { type DisabledReason, type TunnelWebhook, WebhookReason } from '../crds/tunnel-webhook.ts'
import type { Tunnel } from '../crds/tunnel.ts'
import { tunnelOwnersOf } from './live-passwords.ts'
import { ADDRESS_RULE, type AddressGuard } from './outside-addresses.ts'

// Rules about which webhooks of a tunnel are active. Operator and API server use them, so they agree without communication. All pure.

/** Maximum number of webhooks of a tunnel (docs/limits.md). */
export const WEBHOOKS_MAX = 10

/** Returns the key of the tunnel that a webhook names. */
export const tunnelOfWebhook = ({ metadata, spec }: TunnelWebhook) => ({
  namespace: metadata.namespace,
  name: spec.tunnelRef.name,
})

/** Whether a webhook belongs to this tunnel: the tunnel owns it, or no tunnel owns it yet and it names the tunnel. */
export function isWebhookOf({ metadata, spec }: TunnelWebhook, { metadata: tunnel }: Pick<Tunnel, 'metadata'>): boolean {
  if (metadata.namespace !== tunnel.namespace || spec.tunnelRef.name !== tunnel.name) return false
  const owners = tunnelOwnersOf(metadata)
  return owners.length === 0 || owners.some(({ uid }) => uid === tunnel.uid)
}

/** Returns the webhooks of a tunnel, oldest first, without those being deleted. */
export function webhooksOf(tunnel: Pick<Tunnel, 'metadata'>, webhooks: readonly TunnelWebhook[]): readonly TunnelWebhook[] {
  return webhooks
    .filter((webhook) => webhook.metadata.deletionTimestamp === undefined && isWebhookOf(webhook, tunnel))
    .sort(({ metadata: a }, { metadata: b }) => order(a.creationTimestamp, b.creationTimestamp) || order(a.name, b.name))
}

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/**
 * Returns the reason why the operator disabled a webhook, while it is in force: a change of the spec that leaves the webhook enabled ends it.
 */
export function disabledReasonOf({ metadata, spec, status }: TunnelWebhook): DisabledReason | undefined {
  if (status?.disabledReason === undefined) return undefined
  return spec.enabled && metadata.generation !== status.disabledGeneration ? undefined : status.disabledReason
}

export interface ObservedWebhook {
  readonly webhook: TunnelWebhook
  /** Tunnel of the name in its spec. */
  readonly tunnel: Tunnel | undefined
  /** All webhooks for this name, itself included. */
  readonly named: readonly TunnelWebhook[]
  readonly guard: AddressGuard
}

/** Result of the rules: whether events are delivered, and why. */
export interface WebhookState {
  readonly isActive: boolean
  readonly reason: (typeof WebhookReason)[keyof typeof WebhookReason]
  readonly message: string
}

const inactive = (reason: WebhookState['reason'], message: string): WebhookState => ({ isActive: false, reason, message })

const AGAIN = 'set spec.enabled to true when the receiver works again'

/** Returns whether a webhook is active. Pure. */
export function webhookState({ webhook, tunnel, named, guard }: ObservedWebhook): WebhookState {
  const { name } = webhook.spec.tunnelRef
  const disabled = disabledReasonOf(webhook)
  if (!tunnel) return inactive(WebhookReason.TunnelMissing, `there is no tunnel ${name}`)
  if (!isWebhookOf(webhook, tunnel)) return inactive(WebhookReason.TunnelMissing, `it is for an earlier tunnel named ${name}`)
  if (disabled === 'receiver_gone') return inactive(WebhookReason.ReceiverGone, `the receiver answered 410 Gone; ${AGAIN}`)
  if (disabled === 'too_many_failures')
    return inactive(WebhookReason.TooManyFailures, `20 attempts in a row failed, the first of them 3 days ago or more; ${AGAIN}`)
  if (!webhook.spec.enabled) return inactive(WebhookReason.Disabled, 'spec.enabled is false')
  const url = URL.parse(webhook.spec.url)
  if (!url || !WEBHOOK_PORT_RULE.holds(webhook.spec.url))
    return inactive(WebhookReason.AddressRefused, `spec.url ${WEBHOOK_PORT_RULE.message}`)
  if (!guard.allowsUrl(url)) return inactive(WebhookReason.AddressRefused, `spec.url ${ADDRESS_RULE}`)
  const place = webhooksOf(tunnel, named).findIndex(({ metadata }) => metadata.uid === webhook.metadata.uid)
  if (place >= WEBHOOKS_MAX) {
    const message = `${name} has ${WEBHOOKS_MAX} older webhooks, which is the maximum: delete one of them`
    return inactive(WebhookReason.TooManyWebhooks, message)
  }
  return { isActive: true, reason: WebhookReason.Active, message: `events of ${name} are delivered` }
}
