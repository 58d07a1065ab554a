import { useState } from 'preact/hooks'
import type { Access } from '../../access.ts'
import type { DedicatedDatabase } from '../../api/types.ts'
import { AddLink } from '../../parts/add-link.tsx'
import { Empty, Failure, Loading, Time } from '../../parts/basics.tsx'
import { Icon } from '../../parts/icons.tsx'
import { Link } from '../../parts/navigation.tsx'
import { pathOf } from '../../router.ts'
import { motorName } from '../databases/database-state.tsx'
import { KindsOfDatabases } from '../databases/kinds-of-databases.tsx'
import { DatabaseStatus } from './database-status.tsx'
import { useDatabases } from './use-databases.ts'

/** Dedicated databases of a namespace with their state, and a search over them. */
export function DedicatedDatabasesPage({ access }: { access: Access }) {
  const { databases, isCut, failure } = useDatabases(access)
  const add = access.role !== 'viewer' && (
    <AddLink {...{ access, counted: 'databases', to: pathOf(access, 'dedicated', 'new') }}>New dedicated database</AddLink>
  )
  return (
    <>
      <div class="page-head">
        <h1>Databases</h1>
        {add}
      </div>
      <KindsOfDatabases access={access} current="dedicated" />
      <Failure failure={failure} />
      {!databases && !failure && <Loading />}
      {databases?.length === 0 && (
        <Empty icon="database" title="A database with a server of its own">
          <p>Choose an engine and a plan: CPU, memory and storage that no other database shares.</p>
          {add}
        </Empty>
      )}
      {databases && databases.length > 0 && <DatabaseList {...{ access, databases, isCut }} />}
    </>
  )
}

interface ListProps {
  readonly access: Access
  readonly databases: readonly DedicatedDatabase[]
  readonly isCut: boolean
}

function DatabaseList({ access, databases, isCut }: ListProps) {
  const [text, setText] = useState('')
  const wanted = text.trim().toLowerCase()
  const found = databases.filter((database) =>
    [database.name, database.engine, database.plan, database.status].some((field) => field.toLowerCase().includes(wanted)),
  )
  return (
    <>
      <div class="filters">
        <label class="search">
          <Icon name="search" />
          <span class="hidden">Search by name, engine, plan or state</span>
          <input
            {...{ type: 'search', value: text, placeholder: 'Search by name, engine, plan or state', autocomplete: 'off' }}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
        <p class="count" role="status">
          {found.length} of {databases.length}
        </p>
      </div>
      <ul class="rows" aria-label="Dedicated databases">
        {found.map((database) => (
          <li key={database.id}>
            <Link class="row" to={pathOf(access, 'dedicated', database.id)}>
              <span class="row-main">
                <strong>{database.name}</strong>
                <span class="sub">
                  {motorName(database.engine)}, plan {database.plan}, in {database.region}
                </span>
                {database.status !== 'running' && database.statusReason !== null && (
                  <span class="sub reason">{database.statusReason}</span>
                )}
              </span>
              <span class="row-side">
                created <Time at={database.createdAt} />
              </span>
              <DatabaseStatus status={database.status} />
            </Link>
          </li>
        ))}
      </ul>
      {isCut && <p class="hint">This list has the newest 200 databases; the API lists the others.</p>}
    </>
  )
}
