import { useState } from 'preact/hooks'
import type { Access } from '../../access.ts'
import { call } from '../../api/client.ts'
import type { CreateMetadata, DedicatedDatabase } from '../../api/types.ts'
import { otherMessages } from '../../field-messages.ts'
import { Failure, Loading } from '../../parts/basics.tsx'
import { Choice, TextField } from '../../parts/form.tsx'
import { Link, navigate } from '../../parts/navigation.tsx'
import { useAction, useData } from '../../parts/use-data.ts'
import { pathOf } from '../../router.ts'
import { motorName } from '../databases/database-state.tsx'
import { Network, useNetwork } from './network.tsx'
import { PlanChoice } from './plan-choice.tsx'
import { alsoBilled, enginesOf, plansFor, regionsFor } from './plans.ts'
import { DATABASES } from './use-databases.ts'

const FIELDS = ['name', 'engine', 'region', 'plan', 'privateNetwork', 'firewallRules']

/** Creates a dedicated database, then opens its page. */
export function NewDedicatedDatabasePage({ access }: { access: Access }) {
  const { data, failure } = useData<{ metadata: CreateMetadata }>(`${DATABASES}/create/metadata`)
  return (
    <>
      <p class="crumbs">
        <Link to={pathOf(access, 'dedicated')}>Dedicated databases</Link>
      </p>
      <div class="page-head">
        <h1>New dedicated database</h1>
      </div>
      <Failure failure={failure} />
      {!data && !failure && <Loading />}
      {data && <NewDatabase access={access} catalog={data.metadata} />}
    </>
  )
}

function NewDatabase({ access, catalog }: { access: Access; catalog: CreateMetadata }) {
  const engines = enginesOf(catalog)
  if (engines.length === 0) {
    return <Failure failure={{ message: 'No plan of this installation allows an engine that its regions run.' }} />
  }
  return <NewDatabaseForm {...{ access, catalog, engines }} />
}

interface FormProps {
  readonly access: Access
  readonly catalog: CreateMetadata
  readonly engines: readonly string[]
}

function NewDatabaseForm({ access, catalog, engines }: FormProps) {
  const [name, setName] = useState('')
  const [wantedEngine, setEngine] = useState('')
  const [wantedRegion, setRegion] = useState('')
  const [wantedPlan, setPlan] = useState('')
  const network = useNetwork({ firewallRules: null, privateNetwork: false })
  const { isBusy, failure, run } = useAction()
  const engine =
    engines.find((id) => id === wantedEngine) ?? engines.findLast((id) => id.startsWith('postgresql')) ?? engines[0] ?? ''
  const regions = regionsFor(catalog, engine)
  const region = regions.find(({ id }) => id === wantedRegion)?.id ?? regions[0]?.id ?? ''
  const plans = plansFor(catalog, engine)
  const plan = plans.find(({ id }) => id === wantedPlan)?.id ?? plans[0]?.id ?? ''

  const submit = async (event: Event) => {
    event.preventDefault()
    await run(async () => {
      const { organization, namespace } = access
      const body = { name: name.trim(), organization, namespace, engine, region, plan, ...network.send() }
      const { data } = await call<{ database: DedicatedDatabase }>('POST', DATABASES, { body })
      navigate(pathOf(access, 'dedicated', data.database.id))
    })
  }
  const rest = otherMessages(failure, FIELDS)
  return (
    <form class="card wide-form" onSubmit={submit}>
      <TextField
        {...{ label: 'Name', field: 'name', required: true, failure, value: name, onText: setName, placeholder: 'orders' }}
        hint="Lower-case letters, digits and hyphens, at most 40; unique in the namespace."
      />
      <Choice
        {...{ label: 'Engine', field: 'engine', failure, value: engine, onText: setEngine }}
        options={engines.map((id) => [id, motorName(id)])}
      />
      <Choice
        {...{ label: 'Region', field: 'region', failure, value: region, onText: setRegion }}
        options={regions.map((one) => [one.id, one.name])}
      />
      <PlanChoice {...{ plans, value: plan, failure, onPlan: setPlan, hint: alsoBilled(catalog) }} />
      <Network network={network} failure={failure} />
      {rest !== undefined && <Failure failure={{ message: rest }} />}
      <div class="buttons">
        <button type="submit" class="button primary" disabled={isBusy}>
          {isBusy ? 'Creating …' : 'Create database'}
        </button>
      </div>
    </form>
  )
}
