import { useState } from 'preact/hooks'
import type { Webhook } from '../../api/types.ts'
import { Card, Code, Empty, Failure, Loading } from '../../parts/basics.tsx'
import { useData } from '../../parts/use-data.ts'
import { apiPath } from '../../router.ts'
import type { TunnelTabProps } from '../tunnels/tab-props.ts'
import { NewWebhook } from './new-webhook.tsx'
import { WebhookCard } from './webhook-card.tsx'

const POLL_MS = 5_000

/** Webhooks of a tunnel with their deliveries. */
export function WebhooksTab({ access, tunnel }: TunnelTabProps) {
  const path = apiPath(access, 'tunnels', tunnel.id, 'webhooks')
  const { data, failure, reload } = useData<{ webhooks: readonly Webhook[] }>(`${path}?limit=200`, { everyMs: POLL_MS })
  const [withSecret, setSecret] = useState<Webhook>()
  const canEdit = access.role !== 'viewer'
  const onSecret = (webhook: Webhook) => {
    setSecret(webhook)
    reload()
  }
  return (
    <>
      {canEdit && <NewWebhook path={path} onMade={onSecret} />}
      {withSecret?.secret !== undefined && (
        <Card title="Signing secret" class="once">
          <p class="break">
            The receiver at {withSecret.url} verifies signatures with it. Copy it now: it is <strong>not shown again</strong>.
          </p>
          <Code label="Signing secret" text={withSecret.secret} />
        </Card>
      )}
      <Failure failure={failure} />
      {!data && !failure && <Loading />}
      {data?.webhooks.length === 0 && (
        <Empty icon="hook" title="No webhooks">
          <p>A webhook is called whenever a client connects or disconnects.</p>
        </Empty>
      )}
      {data?.webhooks.map((webhook) => (
        <WebhookCard
          key={webhook.id}
          {...{ webhook, canEdit, onSecret, onChanged: reload }}
          path={`${path}/${encodeURIComponent(webhook.id)}`}
        />
      ))}
    </>
  )
}
