import { createHmac } from 'node:crypto'

/** Derives the signing secret of a webhook from its uid and version: `whsec_` and 32 bytes in base64 (Standard Webhooks). */
export type WebhookSecrets = (uid: string, version: number) => string

/**
 * Creates the derivation. Its key comes from the token secret, which only the operator, the API server and administrators of the cluster have. The
 * uid is assigned by the store, so that no tenant can obtain the secret of another webhook.
 */
export function createWebhookSecrets(tokenSecret: Uint8Array): WebhookSecrets {
  const keyOf = () => createHmac('sha256', tokenSecret).update('webhook secrets').digest()
  return (uid, version) =>
    `whsec_${createHmac('sha256', keyOf())
      .update(JSON.stringify([uid, version]))
      .digest('base64')}`
}

/** Time for which a replaced secret still signs, in milliseconds: one day (docs/webhooks.md, "Rotate the secret"). */
export const SECRET_OVERLAP_MS = 86_400_000
