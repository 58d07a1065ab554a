import { Secret } from '../../crds/core.ts'
import { ownerReferenceTo } from '../../crds/kind.ts'
import { annotations, labels } from '../../crds/names.ts'
import { TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import type { WebhookSecrets } from '../../shared/webhook-secrets.ts'
import { isStoreError, type Store } from '../../store/port.ts'
import { decodeSecret, encodeSecret } from '../secret-data.ts'

const MANAGED_BY = 'mooring'

/** Name of the Secret of a webhook that was not created by the REST API. */
const secretName = ({ metadata }: TunnelWebhook): string => `${metadata.name}-webhook`

/**
 * Creates or restores the Secret with the signing secret of a webhook made with kubectl. Webhooks of the REST API have none: the API shows their secret
 * once. The Secret is an output. Deliveries are signed with the derived secret, and what a tenant writes into the Secret is overwritten.
 * @returns the reference for the status; null for a webhook of the REST API; `taken` when a Secret of another owner has the name
 */
export async function keepTenantSecret(
  store: Store,
  webhook: TunnelWebhook,
  secrets: WebhookSecrets,
): Promise<{ readonly name: string } | null | 'taken'> {
  const { metadata, spec } = webhook
  if (metadata.annotations?.[annotations.createdBy] !== undefined) return null
  const key = { namespace: metadata.namespace ?? '', name: secretName(webhook) }
  const secret = secrets(metadata.uid, spec.secretVersion)
  const data = encodeSecret({ type: 'webhook', provider: MANAGED_BY, secret })
  const found = (await store.get(Secret, key)) ?? (await created())
  if (!found || found.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid) !== true) return 'taken'
  if (decodeSecret(found.data, 'secret') !== secret) await store.mergePatch(Secret, key, { data }, { uid: found.metadata.uid })
  return { name: key.name }

  async function created(): Promise<Secret | undefined> {
    try {
      return await store.create(Secret, {
        metadata: {
          ...key,
          labels: { [labels.managedBy]: MANAGED_BY },
          ownerReferences: [ownerReferenceTo(TunnelWebhook, webhook)],
        },
        type: 'servicebinding.io/webhook',
        data,
      })
    } catch (error) {
      if (isStoreError(error, 'already_exists')) return undefined
      throw error
    }
  }
}
