import { useEffect, useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import type { CreateMetadata, DedicatedDatabase } from '../../api/types.ts'
import { otherMessages } from '../../field-messages.ts'
import { Card, Failure, Loading } from '../../parts/basics.tsx'
import { useAction, useData } from '../../parts/use-data.ts'
import { Network, useNetwork } from './network.tsx'
import { PlanChoice } from './plan-choice.tsx'
import { alsoBilled, plansFor } from './plans.ts'
import { isSameNetwork, saveNetwork } from './save-network.ts'
import { DATABASES } from './use-databases.ts'

interface SettingsProps {
  readonly database: DedicatedDatabase
  readonly path: string
  readonly canEdit: boolean
  /** Called after a change was saved. */
  readonly onChanged: () => void
}

type DatabaseData = { readonly database: DedicatedDatabase }

/** Form with the private network and the firewall rules. It follows the database until the user changes something. */
export function NetworkCard({ database, path, canEdit, onChanged }: SettingsProps) {
  const network = useNetwork(database)
  const { privateNetwork, firewallRules } = database
  const settings = JSON.stringify([privateNetwork, firewallRules])
  useEffect(() => {
    if (!network.isChanged && !isSameNetwork(database, network.start)) network.reset(database)
  }, [settings])
  const [isSaved, setSaved] = useState(false)
  const { isBusy, failure, run } = useAction()
  const submit = async (event: Event) => {
    event.preventDefault()
    setSaved(false)
    const isDone = await run(async () => {
      network.reset(await saveNetwork(path, network.start, network.send()))
      onChanged()
    })
    setSaved(isDone)
  }
  const rest = otherMessages(failure, ['privateNetwork', 'firewallRules'])
  return (
    <Card title="Network">
      <form onSubmit={submit}>
        <fieldset class="settings" disabled={!canEdit}>
          <Network network={network} failure={failure} />
        </fieldset>
        {failure?.code === 'conflict' && (
          <p class="note warn">The database was changed meanwhile. Discard your changes to see its settings.</p>
        )}
        {rest !== undefined && <Failure failure={{ message: rest }} />}
        {canEdit && (
          <div class="buttons">
            <button type="submit" class="button primary" disabled={isBusy || !network.isChanged}>
              {isBusy ? 'Saving …' : 'Save network'}
            </button>
            <button type="button" class="button" disabled={!network.isChanged} onClick={() => network.reset(database)}>
              Discard
            </button>
            <span role="status">
              {isSaved && !network.isChanged ? 'Saved. Sessions from sources that are not allowed any more end.' : ''}
            </span>
          </div>
        )}
      </form>
    </Card>
  )
}

/** Form with the plan. Plans with less storage cannot be chosen. */
export function PlanCard({ database, path, canEdit, onChanged }: SettingsProps) {
  const { data, failure: loadFailure } = useData<{ metadata: CreateMetadata }>(`${DATABASES}/create/metadata`)
  const [wanted, setWanted] = useState<string>()
  const { isBusy, failure, run } = useAction()
  if (!data) return <Card title="Plan">{loadFailure ? <Failure failure={loadFailure} /> : <Loading />}</Card>
  const plans = plansFor(data.metadata, database.engine)
  const storage = plans.find(({ id }) => id === database.plan)?.storageGiB ?? 0
  const value = wanted ?? database.plan
  const submit = async (event: Event) => {
    event.preventDefault()
    const isDone = await run(() => call<DatabaseData>('PATCH', path, { body: { plan: value } }))
    if (isDone) onChanged()
  }
  const rest = otherMessages(failure, ['plan'])
  return (
    <Card title="Plan">
      <form onSubmit={submit}>
        <fieldset class="settings" disabled={!canEdit}>
          <PlanChoice
            {...{ plans, value, failure, onPlan: setWanted, hint: alsoBilled(data.metadata), isTitled: true }}
            blockedBy={({ storageGiB }) => (storageGiB < storage ? 'Less storage than now: storage only grows.' : undefined)}
          />
        </fieldset>
        {rest !== undefined && <Failure failure={{ message: rest }} />}
        {canEdit && (
          <div class="buttons">
            <button type="submit" class="button primary" disabled={isBusy || value === database.plan}>
              {isBusy ? 'Changing …' : 'Change plan'}
            </button>
          </div>
        )}
      </form>
    </Card>
  )
}
