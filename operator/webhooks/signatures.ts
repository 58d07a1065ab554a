import { Webhook } from 'standardwebhooks'
import type { TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import type { WebhookSecrets } from '../../shared/webhook-secrets.ts'

export interface Signed {
  readonly webhook: TunnelWebhook
  readonly event: string
  readonly body: string
  /** Time of the attempt in milliseconds since the epoch. */
  readonly at: number
}

/** Returns the versions of the secret that sign at a time, the current version first. Pure. */
export function signingVersions({ spec, status }: TunnelWebhook, at: number): readonly number[] {
  const previous = at < Date.parse(status?.previousSecretUntil ?? '') ? status?.previousSecretVersion : undefined
  // Until the operator has reconciled a rotation, the version in the status is the former one.
  const versions = [spec.secretVersion, status?.secretVersion, previous].filter((version) => version !== undefined)
  return [...new Set(versions)]
}

/** Returns the headers of a message (Standard Webhooks, "Webhook metadata" and "Verifying webhook authenticity"). */
export function messageHeaders(secrets: WebhookSecrets, { webhook, event, body, at }: Signed): Readonly<Record<string, string>> {
  const { uid } = webhook.metadata
  const signatures = signingVersions(webhook, at).map((version) =>
    new Webhook(secrets(uid, version)).sign(event, new Date(at), body),
  )
  return {
    'content-type': 'application/json',
    'user-agent': 'Mooring-Webhooks',
    'webhook-id': event,
    'webhook-timestamp': String(Math.floor(at / 1_000)),
    'webhook-signature': signatures.join(' '),
  }
}
