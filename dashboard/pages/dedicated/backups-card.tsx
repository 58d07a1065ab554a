import { useState } from 'preact/hooks'
import type { Access } from '../../access.ts'
import { call } from '../../api/client.ts'
import type { Backup, Backups as BackupsData, CreateMetadata, DedicatedDatabase } from '../../api/types.ts'
import { otherMessages } from '../../field-messages.ts'
import { bytes, fullTime } from '../../format.ts'
import { ActionRow, AskButton } from '../../parts/actions.tsx'
import { Card, Facts, Failure, Loading, Pill, Time, type Tone } from '../../parts/basics.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { TextField } from '../../parts/form.tsx'
import { useAction, useData } from '../../parts/use-data.ts'
import { RestoreForm } from './restore-form.tsx'
import { DATABASES } from './use-databases.ts'

interface BackupsProps {
  readonly access: Access
  readonly database: DedicatedDatabase
  readonly path: string
  readonly canEdit: boolean
  readonly onChanged: () => void
}

const ADD_ON = 'point-in-time-recovery'

/** Point-in-time recovery of a database: its restore window, its backups and a restore. Without the add-on: the form that adds it, if the engine has it. */
export function BackupsCard(props: BackupsProps) {
  const { database } = props
  const { data } = useData<{ metadata: CreateMetadata }>(`${DATABASES}/create/metadata`)
  const addOn = data?.metadata.addons.find(({ id }) => id === ADD_ON)
  if (!database.pointInTimeRecovery && !addOn?.engines.includes(database.engine)) return null
  return <Card title="Backups">{database.pointInTimeRecovery ? <Recovery {...props} /> : <AddRecovery {...props} />}</Card>
}

function AddRecovery({ path, canEdit, onChanged }: BackupsProps) {
  const [days, setDays] = useState('7')
  const { isBusy, failure, run } = useAction()
  if (!canEdit) return <p>This database has no backups.</p>
  const submit = async (event: Event) => {
    event.preventDefault()
    const body = { pointInTimeRecovery: { retentionDays: Number(days) } }
    if (await run(() => call('PATCH', path, { body }))) onChanged()
  }
  const rest = otherMessages(failure, ['pointInTimeRecovery.retentionDays'])
  return (
    <form onSubmit={submit}>
      <TextField
        {...{
          label: 'Retention in days',
          field: 'pointInTimeRecovery.retentionDays',
          failure,
          value: days,
          onText: setDays,
          required: true,
        }}
        hint="1 to 35. Any moment of this period can be restored. The server restarts."
      />
      {rest !== undefined && <Failure failure={{ message: rest }} />}
      <div class="buttons">
        <button type="submit" class="button primary" disabled={isBusy}>
          {isBusy ? 'Adding …' : 'Add point-in-time recovery'}
        </button>
      </div>
    </form>
  )
}

const POLL_MS = 5_000

function Recovery({ access, database, path, canEdit, onChanged }: BackupsProps) {
  const { data, failure, reload } = useData<BackupsData>(`${path}/backups`, { everyMs: POLL_MS })
  const [isAsked, setAsked] = useState(false)
  const request = useAction()
  const backUp = async () => {
    if (await request.run(() => call('POST', `${path}/backups`))) reload()
  }
  const remove = async () => {
    await call('PATCH', path, { body: { pointInTimeRecovery: null } })
    onChanged()
  }
  return (
    <>
      <Window database={database} found={data} />
      <Failure failure={failure ?? request.failure} />
      {data?.problem && (
        <Failure failure={{ message: `Backups fail since ${fullTime(data.problem.since)}: ${data.problem.message}` }} />
      )}
      {data ? <Backups backups={data.backups} /> : !failure && <Loading />}
      {canEdit && (
        <>
          <ul class="actions">
            <ActionRow hint="The backup appears in the list within seconds.">
              <button type="button" class="button" disabled={request.isBusy} onClick={() => void backUp()}>
                Back up now
              </button>
            </ActionRow>
            <ActionRow hint="All backups of this database are removed. The server restarts.">
              <AskButton label="Stop backups" onClick={() => setAsked(true)} />
            </ActionRow>
          </ul>
          <RestoreForm access={access} database={database} />
        </>
      )}
      {isAsked && (
        <Confirm
          {...{ title: `Remove the backups of ${database.name}?`, verb: 'Remove', typed: database.name }}
          {...{ onConfirm: remove, onClose: () => setAsked(false) }}
        >
          <p>No moment of the past can be restored any more. This cannot be undone.</p>
        </Confirm>
      )}
    </>
  )
}

interface WindowProps {
  readonly database: DedicatedDatabase
  readonly found: BackupsData | undefined
}

function Window({ database: { pointInTimeRecovery, restoreWindow }, found }: WindowProps) {
  const none = 'none yet: the first backup is not complete'
  const earlier = found?.restoreWindows.slice(0, -1) ?? []
  return (
    <Facts
      rows={[
        ['Last verified restore', <Verified found={found} />],
        ['Retention', `${pointInTimeRecovery?.retentionDays ?? 0} days`],
        ['Restorable from', restoreWindow ? <Time at={restoreWindow.earliest} /> : none],
        ['Restorable to', restoreWindow ? <Time at={restoreWindow.latest} /> : none],
        ...(earlier.length > 0 ? [['Also restorable', <Earlier windows={earlier} />] as const] : []),
      ]}
    />
  )
}

/** Result of the restore drills: when one last succeeded, what it checked, and why the last one failed. */
function Verified({ found }: Pick<WindowProps, 'found'>) {
  const { lastVerifiedRestore = null, drill = null, drillError = null } = found ?? {}
  const counts =
    drill && `: ${drill.rows.toLocaleString('en')} rows of ${drill.tables} tables read, ${drill.compared} tables compared`
  return (
    <>
      {lastVerifiedRestore === null ? 'none yet' : <Time at={lastVerifiedRestore} />}
      {counts}
      {drillError !== null && <p class="hint">The last restore drill failed: {drillError}</p>}
    </>
  )
}

/** Intervals before gaps in the log. */
const Earlier = ({ windows }: { readonly windows: BackupsData['restoreWindows'] }) => (
  <>
    {windows.map(({ earliest, latest }) => (
      <div key={earliest}>
        <Time at={earliest} /> to <Time at={latest} />
      </div>
    ))}
  </>
)

const TONES: Readonly<Record<Backup['status'], Tone>> = { running: 'accent', succeeded: 'good', failed: 'bad' }

const Backups = ({ backups }: { backups: readonly Backup[] }) => (
  <div class="table-scroll">
    <table>
      <thead>
        <tr>
          <th scope="col">Backup</th>
          <th scope="col">State</th>
          <th scope="col">Kind</th>
          <th scope="col">Size</th>
          <th scope="col">Last verified restore</th>
        </tr>
      </thead>
      <tbody>
        {backups.map(({ id, startedAt, status, kind, sizeBytes, lastVerifiedRestore, error }) => (
          <tr key={id}>
            <td>
              <Time at={startedAt} />
            </td>
            <td>
              <Pill tone={TONES[status]} live={status === 'running'}>
                {status}
              </Pill>
              {error !== null && <p class="hint">{error}</p>}
            </td>
            <td>{kind}</td>
            <td>{bytes(sizeBytes)}</td>
            <td>{lastVerifiedRestore === null ? '–' : <Time at={lastVerifiedRestore} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)
