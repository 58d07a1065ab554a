import { useState } from 'preact/hooks'
import type { Access } from '../../access.ts'
import { call } from '../../api/client.ts'
import type { DedicatedDatabase, Region } from '../../api/types.ts'
import { otherMessages } from '../../field-messages.ts'
import { Failure } from '../../parts/basics.tsx'
import { TextField } from '../../parts/form.tsx'
import { navigate } from '../../parts/navigation.tsx'
import { useAction, useData } from '../../parts/use-data.ts'
import { pathOf } from '../../router.ts'
import { DATABASES } from './use-databases.ts'

interface RestoreProps {
  readonly access: Access
  readonly database: DedicatedDatabase
}

const FIELDS = ['name', 'restoreFrom.time']

/** Form that restores a moment of a database as a new one of the same engine, region and plan, and opens its page. */
export function RestoreForm({ access, database }: RestoreProps) {
  const { restoreWindow } = database
  const { data } = useData<{ regions: readonly Region[] }>('/v1/regions')
  const [name, setName] = useState('')
  const [time, setTime] = useState<string>()
  const { isBusy, failure, run } = useAction()
  if (!restoreWindow) return null
  const value = time ?? restoreWindow.latest
  const region = data?.regions.find((one) => one.name === database.region)?.id
  const submit = async (event: Event) => {
    event.preventDefault()
    await run(async () => {
      const { organization, namespace } = access
      const { engine, plan, id } = database
      const restoreFrom = { databaseId: id, time: value.trim() }
      const body = { name: name.trim(), organization, namespace, engine, region, plan, restoreFrom }
      const { data: made } = await call<{ database: DedicatedDatabase }>('POST', DATABASES, { body })
      navigate(pathOf(access, 'dedicated', made.database.id))
    })
  }
  const rest = otherMessages(failure, FIELDS)
  return (
    <form onSubmit={submit}>
      <h3>Restore</h3>
      <TextField
        {...{ label: 'Name of the new database', field: 'name', failure, value: name, onText: setName, required: true }}
      />
      <TextField
        {...{ label: 'Moment in UTC', field: 'restoreFrom.time', failure, value, onText: setTime, required: true }}
        hint={`From ${restoreWindow.earliest} to ${restoreWindow.latest}, or the present. This database stays as it is.`}
      />
      {rest !== undefined && <Failure failure={{ message: rest }} />}
      <div class="buttons">
        <button type="submit" class="button primary" disabled={isBusy || region === undefined}>
          {isBusy ? 'Restoring …' : 'Restore as a new database'}
        </button>
      </div>
    </form>
  )
}
