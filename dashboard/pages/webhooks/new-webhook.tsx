import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import type { Webhook } from '../../api/types.ts'
import { otherMessages } from '../../field-messages.ts'
import { Card, Failure } from '../../parts/basics.tsx'
import { Choice, TextField } from '../../parts/form.tsx'
import { useAction } from '../../parts/use-data.ts'

const EVENTS = [
  ['tunnel.connected,tunnel.disconnected', 'connects and disconnects'],
  ['tunnel.connected', 'connects'],
  ['tunnel.disconnected', 'disconnects'],
] as const

export function NewWebhook({ path, onMade }: { path: string; onMade: (webhook: Webhook) => void }) {
  const [url, setUrl] = useState('')
  const [events, setEvents] = useState<string>(EVENTS[0][0])
  const { isBusy, failure, run } = useAction()
  const submit = async (event: Event) => {
    event.preventDefault()
    await run(async () => {
      const { data } = await call<{ webhook: Webhook }>('POST', path, { body: { url: url.trim(), events: events.split(',') } })
      setUrl('')
      onMade(data.webhook)
    })
  }
  const rest = otherMessages(failure, ['url', 'events'])
  return (
    <Card title="New webhook">
      <form onSubmit={submit}>
        <TextField
          {...{
            label: 'URL',
            field: 'url',
            failure,
            value: url,
            onText: setUrl,
            required: true,
            placeholder: 'https://example.org/hook',
          }}
        />
        <Choice {...{ label: 'Events', field: 'events', failure, value: events, onText: setEvents, options: EVENTS }} />
        {rest !== undefined && <Failure failure={{ message: rest }} />}
        <div class="buttons">
          <button type="submit" class="button primary" disabled={isBusy}>
            Add webhook
          </button>
        </div>
      </form>
    </Card>
  )
}
