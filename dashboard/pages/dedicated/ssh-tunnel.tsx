import { useEffect, useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import type { DedicatedDatabase } from '../../api/types.ts'
import { linesOf, otherMessages } from '../../field-messages.ts'
import { Card, Failure } from '../../parts/basics.tsx'
import { Choice, Switch, TextField } from '../../parts/form.tsx'
import { useAction } from '../../parts/use-data.ts'
import { PasswordsCard } from '../tunnels/passwords.tsx'

interface SshTunnelProps {
  readonly database: DedicatedDatabase
  /** Path of the database in the REST API. */
  readonly path: string
  readonly canEdit: boolean
  /** Called after a change was saved. */
  readonly onChanged: () => void
}

const MODES = [
  ['both', 'key or temporary password'],
  ['key', 'key'],
  ['token', 'temporary password'],
] as const

/** SSH tunnel of a database: settings, and its temporary passwords. */
export const SshTunnel = (props: SshTunnelProps) => {
  const { database, path, canEdit } = props
  const isKeyOnly = database.sshTunnel?.authMode === 'key'
  return (
    <>
      <SshTunnelCard {...props} />
      {database.sshTunnel && (
        <PasswordsCard
          path={`${path}/ssh-passwords`}
          canEdit={canEdit}
          warning={isKeyOnly ? 'The SSH tunnel allows keys alone: a password does not log in.' : undefined}
        />
      )}
    </>
  )
}

interface Draft {
  readonly isOn: boolean
  readonly authMode: string
  readonly keys: string
}

const draftOf = ({ sshTunnel }: DedicatedDatabase): Draft => ({
  isOn: sshTunnel !== null,
  authMode: sshTunnel?.authMode ?? 'both',
  keys: (sshTunnel?.authorizedKeys ?? []).join('\n'),
})

/** Form with the settings. It follows the database until the user changes something. */
function SshTunnelCard({ database, path, canEdit, onChanged }: SshTunnelProps) {
  const stored = JSON.stringify(draftOf(database))
  const [start, setStart] = useState(stored)
  const [draft, setDraft] = useState(() => draftOf(database))
  const { isBusy, failure, run } = useAction()
  const isChanged = JSON.stringify(draft) !== start
  const follow = () => {
    setStart(stored)
    setDraft(draftOf(database))
  }
  useEffect(() => {
    if (!isChanged) follow()
  }, [stored])
  const submit = async (event: Event) => {
    event.preventDefault()
    const { isOn, authMode, keys } = draft
    const sshTunnel = isOn ? { authMode, authorizedKeys: linesOf(keys) } : null
    await run(async () => {
      const { data } = await call<{ database: DedicatedDatabase }>('PATCH', path, { body: { sshTunnel } })
      const saved = draftOf(data.database)
      setStart(JSON.stringify(saved))
      setDraft(saved)
      onChanged()
    })
  }
  const set = (change: Partial<Draft>) => setDraft({ ...draft, ...change })
  const rest = otherMessages(failure, ['sshTunnel.authMode', 'sshTunnel.authorizedKeys'])
  return (
    <Card title="SSH tunnel">
      <form onSubmit={submit}>
        <fieldset class="settings" disabled={!canEdit}>
          <Switch
            {...{ label: 'SSH tunnel', checked: draft.isOn, onSwitch: (isOn) => set({ isOn }) }}
            hint="Clients reach the database through the edges, whatever the network settings are. The connection shows the command."
          />
          {draft.isOn && (
            <>
              <Choice
                {...{ label: 'Login by', field: 'sshTunnel.authMode', failure, value: draft.authMode, options: MODES }}
                onText={(authMode) => set({ authMode })}
              />
              <TextField
                {...{ label: 'Public keys, one a line', field: 'sshTunnel.authorizedKeys', failure, rows: 4 }}
                {...{ placeholder: 'ssh-ed25519 AAAA…', value: draft.keys, onText: (keys: string) => set({ keys }) }}
              />
            </>
          )}
        </fieldset>
        {rest !== undefined && <Failure failure={{ message: rest }} />}
        {canEdit && (
          <div class="buttons">
            <button type="submit" class="button primary" disabled={isBusy || !isChanged}>
              {isBusy ? 'Saving …' : 'Save SSH tunnel'}
            </button>
            <button type="button" class="button" disabled={!isChanged} onClick={follow}>
              Discard changes
            </button>
          </div>
        )}
      </form>
    </Card>
  )
}
