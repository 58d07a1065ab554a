import { useState } from 'preact/hooks'
import { otherMessages } from '../../field-messages.ts'
import { Card, Failure } from '../../parts/basics.tsx'
import { Choice, Switch, TextField } from '../../parts/form.tsx'
import { useAction } from '../../parts/use-data.ts'
import { apiPath } from '../../router.ts'
import { HeaderRows } from './header-rows.tsx'
import { saveSettings, type Start } from './save-settings.ts'
import { changesOf, draftOf, type Draft } from './settings-draft.ts'
import type { TunnelTabProps } from './tab-props.ts'

const MODES = [
  ['both', 'a key or a temporary password'],
  ['key', 'a key only'],
  ['token', 'a temporary password only'],
] as const

const FIELDS = [
  ...['name', 'config.authMode', 'config.target', 'config.sshIPWhitelist', 'config.ingressIPWhitelist'],
  ...['config.authorizedKeys', 'config.liveHeaderModifications'],
]

/** Form with all settings of a tunnel. Polls of the tunnel do not overwrite the user's input. Only changed settings are saved. */
export function SettingsTab({ access, tunnel, loaded }: TunnelTabProps) {
  const [start, setStart] = useState<Start>({ tunnel, etag: loaded.etag })
  const [draft, setDraft] = useState<Draft>(draftOf(tunnel))
  const [isSaved, setSaved] = useState(false)
  const { isBusy, failure, run } = useAction()
  const canEdit = access.role !== 'viewer'
  const set = (change: Partial<Draft>) => {
    setDraft({ ...draft, ...change })
    setSaved(false)
  }
  const changes = changesOf(start.tunnel, draft)

  const submit = async (event: Event) => {
    event.preventDefault()
    if (!changes) return
    const done = await run(async () => {
      const saved = await saveSettings(apiPath(access, 'tunnels', tunnel.id), start, changes)
      setStart(saved)
      setDraft(draftOf(saved.tunnel))
      loaded.reload()
    })
    setSaved(done)
  }
  const discard = () => {
    setStart({ tunnel, etag: loaded.etag })
    setDraft(draftOf(tunnel))
  }
  const rest = otherMessages(failure, FIELDS)
  return (
    <form onSubmit={submit}>
      <fieldset class="settings" disabled={!canEdit}>
        <General {...{ draft, set, failure }} />
        <Visitors {...{ draft, set, failure }} />
        <Clients {...{ draft, set, failure }} />
      </fieldset>
      <div class="save-bar">
        {failure?.code === 'conflict' && (
          <p class="note warn">The tunnel was changed meanwhile. Discard your changes to see its settings.</p>
        )}
        {rest !== undefined && <Failure failure={{ message: rest }} />}
        <span role="status">{isSaved && !changes ? 'Saved. It is in force already.' : ''}</span>
        {canEdit && (
          <div class="buttons">
            <button type="button" class="button" disabled={!changes} onClick={discard}>
              Discard
            </button>
            <button type="submit" class="button primary" disabled={isBusy || !changes}>
              {isBusy ? 'Saving …' : 'Save'}
            </button>
          </div>
        )}
      </div>
    </form>
  )
}

type PartProps = { readonly draft: Draft; readonly set: (change: Partial<Draft>) => void } & Pick<
  ReturnType<typeof useAction>,
  'failure'
>

const General = ({ draft, set, failure }: PartProps) => (
  <Card title="General">
    <TextField
      {...{ label: 'Name', field: 'name', failure, required: true, value: draft.name, onText: (name) => set({ name }) }}
    />
  </Card>
)

const Visitors = ({ draft, set, failure }: PartProps) => (
  <Card title="Visitors">
    <Switch
      {...{ label: 'HTTPS only', checked: draft.httpsOnly, onSwitch: (httpsOnly) => set({ httpsOnly }) }}
      hint="Redirects plain HTTP to HTTPS."
    />
    <Switch
      {...{
        label: 'Answer CORS preflights',
        checked: draft.allowCorsPreflight,
        onSwitch: (allowCorsPreflight) => set({ allowCorsPreflight }),
      }}
      hint="The edge answers OPTIONS requests itself."
    />
    <TextField
      {...{
        label: 'Addresses that may visit, one a line',
        field: 'config.ingressIPWhitelist',
        failure,
        rows: 3,
        placeholder: '203.0.113.0/24',
      }}
      {...{ value: draft.ingressIPWhitelist, onText: (ingressIPWhitelist) => set({ ingressIPWhitelist }) }}
      hint="IP addresses or CIDR ranges. Empty: everyone."
    />
    <HeaderRows headers={draft.headers} failure={failure} onChange={(headers) => set({ headers })} />
  </Card>
)

const Clients = ({ draft, set, failure }: PartProps) => (
  <Card title="SSH clients">
    <Choice
      {...{
        label: 'Login by',
        field: 'config.authMode',
        failure,
        value: draft.authMode,
        options: MODES,
        onText: (authMode) => set({ authMode }),
      }}
    />
    <TextField
      {...{
        label: 'Public keys, one a line',
        field: 'config.authorizedKeys',
        failure,
        rows: 4,
        placeholder: 'ssh-ed25519 AAAA…',
      }}
      {...{ value: draft.authorizedKeys, onText: (authorizedKeys) => set({ authorizedKeys }) }}
    />
    <TextField
      {...{ label: 'Addresses that may connect, one a line', field: 'config.sshIPWhitelist', failure, rows: 3 }}
      {...{ value: draft.sshIPWhitelist, onText: (sshIPWhitelist) => set({ sshIPWhitelist }) }}
      hint="IP addresses or CIDR ranges. Empty: everyone."
    />
    <Switch
      {...{
        label: 'Forward to other hosts',
        checked: draft.forwardToOtherHosts,
        onSwitch: (forwardToOtherHosts) => set({ forwardToOtherHosts }),
      }}
      hint="The target may be on another host than the client."
    />
    <TextField
      {...{ label: 'Target (optional)', field: 'config.target', failure, placeholder: 'localhost:3000' }}
      {...{ value: draft.target, onText: (target) => set({ target }) }}
      hint="host:port that the edge names itself, for clients that forward dynamically (ssh -R port)."
    />
  </Card>
)
