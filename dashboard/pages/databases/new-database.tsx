import { useState } from 'preact/hooks'
import type { Access } from '../../access.ts'
import { call } from '../../api/client.ts'
import type { Instance, Region } from '../../api/types.ts'
import { otherMessages } from '../../field-messages.ts'
import { Failure, Loading } from '../../parts/basics.tsx'
import { Choice, TextField } from '../../parts/form.tsx'
import { Link } from '../../parts/navigation.tsx'
import { useAction, useData } from '../../parts/use-data.ts'
import { namespaceHeader, pathOf } from '../../router.ts'
import { Credentials } from './credentials.tsx'
import { motorName } from './database-state.tsx'

const LIFETIMES = [
  ['3600', 'one hour'],
  ['86400', 'one day'],
  ['604800', 'one week'],
  ['2592000', '30 days'],
  ['', 'until it is deleted'],
] as const

const FIELDS = ['identifier', 'region', 'motor', 'ttl']

/** Creates a database, then shows its connection string once. */
export function NewDatabasePage({ access }: { access: Access }) {
  const [made, setMade] = useState<Instance>()
  return (
    <>
      <p class="crumbs">
        <Link to={pathOf(access, 'databases')}>Databases</Link>
      </p>
      <div class="page-head">
        <h1>{made ? made.identifier : 'New database'}</h1>
      </div>
      {made ? (
        <>
          <Credentials instance={made} />
          <div class="buttons">
            <Link class="button" to={pathOf(access, 'databases', made.id)}>
              Go to the database
            </Link>
          </div>
        </>
      ) : (
        <NewDatabaseForm access={access} onMade={setMade} />
      )}
    </>
  )
}

function NewDatabaseForm({ access, onMade }: { access: Access; onMade: (made: Instance) => void }) {
  const regions = useData<{ regions: readonly Region[] }>('/v1/regions')
  const [identifier, setIdentifier] = useState('')
  const [regionId, setRegionId] = useState('')
  const [motor, setMotor] = useState('')
  const [ttl, setTtl] = useState('604800')
  const { isBusy, failure, run } = useAction()
  if (!regions.data) return regions.failure ? <Failure failure={regions.failure} /> : <Loading />
  const all = regions.data.regions
  const region = all.find(({ id }) => id === regionId) ?? all[0]
  const motors = (region?.motors ?? []).filter(({ supported }) => supported).map(({ id }) => id)
  const chosen = motors.find((id) => id === motor) ?? motors.findLast((id) => id.startsWith('postgresql')) ?? motors[0]
  if (!region || chosen === undefined)
    return <Failure failure={{ message: 'No region of this installation serves databases.' }} />

  const submit = async (event: Event) => {
    event.preventDefault()
    await run(async () => {
      const body = { identifier, region: region.id, motor: chosen, ...(ttl !== '' && { ttl: Number(ttl) }) }
      const { data } = await call<{ instance: Instance }>('POST', '/v1/instances', { body, headers: namespaceHeader(access) })
      onMade(data.instance)
    })
  }
  const rest = otherMessages(failure, FIELDS)
  return (
    <form class="card narrow" onSubmit={submit}>
      <TextField
        {...{
          label: 'Identifier',
          field: 'identifier',
          required: true,
          failure,
          value: identifier,
          onText: setIdentifier,
          placeholder: 'pr-42',
        }}
        hint="A label of your choice, such as a branch or a pull request."
      />
      <Choice
        {...{ label: 'Engine', field: 'motor', failure, value: chosen, onText: setMotor }}
        options={motors.map((id) => [id, motorName(id)])}
      />
      {all.length > 1 && (
        <Choice
          {...{ label: 'Region', field: 'region', failure, value: region.id, onText: setRegionId }}
          options={all.map(({ id, name }) => [id, name])}
        />
      )}
      <Choice {...{ label: 'Lifetime', field: 'ttl', failure, value: ttl, onText: setTtl, options: LIFETIMES }} />
      {rest !== undefined && <Failure failure={{ message: rest }} />}
      <div class="buttons">
        <button type="submit" class="button primary" disabled={isBusy}>
          {isBusy ? 'Creating …' : 'Create database'}
        </button>
      </div>
    </form>
  )
}
