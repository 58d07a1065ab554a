import { useState } from 'preact/hooks'
import type { Access } from '../../access.ts'
import type { Instance } from '../../api/types.ts'
import { AddLink } from '../../parts/add-link.tsx'
import { Empty, Failure, Loading } from '../../parts/basics.tsx'
import { Icon } from '../../parts/icons.tsx'
import { Link } from '../../parts/navigation.tsx'
import { useData } from '../../parts/use-data.ts'
import { namespaceHeader, pathOf } from '../../router.ts'
import { KindsOfDatabases } from './kinds-of-databases.tsx'
import { DatabaseState, Expiry, motorName } from './database-state.tsx'

const POLL_MS = 4_000

interface InstancesData {
  readonly instances: readonly Instance[]
  readonly nextCursor: string | null
}

/** Databases of a namespace with their state, and a search over them. */
export function DatabasesPage({ access }: { access: Access }) {
  const { data, failure } = useData<InstancesData>('/v1/instances?limit=200', {
    everyMs: POLL_MS,
    headers: namespaceHeader(access),
  })
  const [text, setText] = useState('')
  const add = access.role !== 'viewer' && (
    <AddLink {...{ access, counted: 'instances', to: pathOf(access, 'databases', 'new') }}>New database</AddLink>
  )
  return (
    <>
      <div class="page-head">
        <h1>Databases</h1>
        {add}
      </div>
      <KindsOfDatabases access={access} current="databases" />
      <Failure failure={failure} />
      {!data && !failure && <Loading />}
      {data?.instances.length === 0 && (
        <Empty icon="database" title="A database in a second">
          <p>Choose an engine and get a connection string: for a pull request, a test, an idea.</p>
          {add}
        </Empty>
      )}
      {data && data.instances.length > 0 && <DatabaseList {...{ access, data, text, setText }} />}
    </>
  )
}

interface ListProps {
  readonly access: Access
  readonly data: InstancesData
  readonly text: string
  readonly setText: (text: string) => void
}

function DatabaseList({ access, data, text, setText }: ListProps) {
  const wanted = text.trim().toLowerCase()
  const found = data.instances.filter(({ identifier, name, motor }) =>
    [identifier, name, motor].some((field) => field?.toLowerCase().includes(wanted)),
  )
  return (
    <>
      <div class="filters">
        <label class="search">
          <Icon name="search" />
          <span class="hidden">Search by identifier, name or engine</span>
          <input
            {...{ type: 'search', value: text, placeholder: 'Search by identifier, name or engine', autocomplete: 'off' }}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
        <p class="count" role="status">
          {found.length} of {data.instances.length}
        </p>
      </div>
      <ul class="rows" aria-label="Databases">
        {found.map((instance) => (
          <li key={instance.id}>
            <Link class="row" to={pathOf(access, 'databases', instance.id)}>
              <span class="row-main">
                <strong>{instance.identifier}</strong>
                <span class="sub">
                  {motorName(instance.motor)} in {instance.region}
                </span>
              </span>
              <span class="row-side">
                <Expiry at={instance.expiresAt} />
              </span>
              <DatabaseState instance={instance} />
            </Link>
          </li>
        ))}
      </ul>
      {data.nextCursor !== null && <p class="hint">These are the newest 200; the API lists the others.</p>}
    </>
  )
}
