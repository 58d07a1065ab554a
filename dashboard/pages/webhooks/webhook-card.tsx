import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import type { Webhook } from '../../api/types.ts'
import { Card, Failure, Pill, Time } from '../../parts/basics.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { useAction } from '../../parts/use-data.ts'
import { Deliveries } from './deliveries.tsx'

interface WebhookCardProps {
  readonly webhook: Webhook
  /** Path of the webhook in the REST API. */
  readonly path: string
  readonly canEdit: boolean
  readonly onSecret: (webhook: Webhook) => void
  readonly onChanged: () => void
}

/** One webhook: state, actions, and deliveries on demand. */
export function WebhookCard({ webhook, path, canEdit, onSecret, onChanged }: WebhookCardProps) {
  const [asked, setAsked] = useState<'rotate' | 'delete'>()
  const [isOpen, setOpen] = useState(false)
  const { isBusy, failure, run } = useAction()
  const change = async (method: string, rest = '', body?: object) => {
    const { data } = await call<{ webhook: Webhook }>(method, path + rest, { body })
    onChanged()
    return data.webhook
  }
  const test = () =>
    run(async () => {
      await call('POST', `${path}/test`)
      setOpen(true)
    })
  const switchOver = () => run(() => change('PATCH', '', { enabled: !webhook.enabled }))
  return (
    <Card title={webhook.url} actions={<WebhookState webhook={webhook} />}>
      <p class="sub">
        {webhook.events.join(', ')}; created <Time at={webhook.createdAt} />
      </p>
      {webhook.disabledReason !== null && <p class="note warn">Mooring disabled it: {webhook.disabledReason}.</p>}
      <Failure failure={failure} />
      <div class="buttons">
        <button type="button" class="button small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Deliveries
        </button>
        {canEdit && (
          <>
            <button type="button" class="button small" disabled={isBusy} onClick={test}>
              Send a test
            </button>
            <button type="button" class="button small" disabled={isBusy} onClick={switchOver}>
              {webhook.enabled ? 'Disable' : 'Enable'}
            </button>
            <button type="button" class="button small" onClick={() => setAsked('rotate')}>
              Rotate secret …
            </button>
            <button type="button" class="button small" onClick={() => setAsked('delete')}>
              Remove …
            </button>
          </>
        )}
      </div>
      {isOpen && <Deliveries path={`${path}/deliveries`} canEdit={canEdit} />}
      {asked === 'rotate' && (
        <Confirm
          title="Rotate the secret?"
          verb="Rotate"
          onConfirm={async () => onSecret(await change('POST', '/rotate-secret'))}
          onClose={() => setAsked(undefined)}
        >
          <p>Requests are signed with the old and the new secret for a day, so that the receiver has time to change.</p>
        </Confirm>
      )}
      {asked === 'delete' && (
        <Confirm
          title="Remove this webhook?"
          verb="Remove"
          onConfirm={() => change('DELETE')}
          onClose={() => setAsked(undefined)}
        >
          <p class="break">{webhook.url} gets no more events, pending ones included.</p>
        </Confirm>
      )}
    </Card>
  )
}

function WebhookState({ webhook: { enabled, disabledReason } }: { webhook: Webhook }) {
  if (disabledReason !== null) return <Pill tone="bad">disabled by Mooring</Pill>
  return enabled ? <Pill tone="good">enabled</Pill> : <Pill tone="plain">disabled</Pill>
}
