import { useState } from 'preact/hooks'
import type { Access } from '../../access.ts'
import type { DatabaseConnection, DedicatedDatabase } from '../../api/types.ts'
import { Card, Empty, Facts, Failure, Loading, Time } from '../../parts/basics.tsx'
import { Link } from '../../parts/navigation.tsx'
import { pathOf } from '../../router.ts'
import { AuditTable } from '../audit.tsx'
import { motorName } from '../databases/database-state.tsx'
import { Actions } from './actions.tsx'
import { BackupsCard } from './backups-card.tsx'
import { Connection } from './connection.tsx'
import { DatabaseStatus, StatusReason } from './database-status.tsx'
import { Monitoring } from './monitoring.tsx'
import { NetworkCard, PlanCard } from './settings-cards.tsx'
import { SshTunnel } from './ssh-tunnel.tsx'
import { UsageCard } from './usage-card.tsx'
import { DATABASES, useDatabases } from './use-databases.ts'

/** One dedicated database: state, connection on demand, settings, actions, audit entries. */
export function DedicatedDatabasePage({ access, id }: { access: Access; id: string }) {
  const { databases, failure, reload } = useDatabases(access)
  const [connection, setConnection] = useState<DatabaseConnection>()
  const database = databases?.find((one) => one.id === id)
  if (!database) return <NoDatabase isLoaded={databases !== undefined} failure={failure} />
  const path = `${DATABASES}/${encodeURIComponent(id)}`
  const canEdit = access.role !== 'viewer' && database.status !== 'deleting'
  const settings = { database, path, canEdit, onChanged: reload }
  return (
    <>
      <p class="crumbs">
        <Link to={pathOf(access, 'dedicated')}>Dedicated databases</Link>
      </p>
      <div class="page-head">
        <div class="head-main">
          <h1>
            {database.name} <DatabaseStatus status={database.status} />
          </h1>
          <p class="sub">{motorName(database.engine)}</p>
        </div>
      </div>
      <Failure failure={failure} />
      <StatusReason database={database} />
      {connection && <Connection connection={connection} motor={database.engine} isPrivate={database.privateNetwork} />}
      <div class="columns">
        <About database={database} />
        {canEdit && (
          <Actions {...{ access, database, path, reload, isShown: connection !== undefined, onConnection: setConnection }} />
        )}
        <PlanCard {...settings} />
        <NetworkCard {...settings} />
        <SshTunnel {...settings} />
        <UsageCard path={path} />
      </div>
      <Monitoring {...settings} />
      <BackupsCard {...settings} access={access} />
      <h2 class="section">Audit</h2>
      <AuditTable access={access} id={id} />
    </>
  )
}

function NoDatabase({ isLoaded, failure }: { isLoaded: boolean; failure: Parameters<typeof Failure>[0]['failure'] }) {
  if (failure) return <Failure failure={failure} />
  if (!isLoaded) return <Loading />
  return (
    <Empty icon="search" title="No such database">
      <p>It was deleted, or it is in another namespace.</p>
    </Empty>
  )
}

const About = ({ database }: { database: DedicatedDatabase }) => (
  <Card title="About">
    <Facts
      rows={[
        ['Region', database.region],
        ['Plan', database.plan],
        ['Version', database.engineVersion ?? '–'],
        ['Reachable', database.privateNetwork ? 'in the private network only' : 'from outside, as the rules allow'],
        ['Created', <Time at={database.createdAt} />],
        ['Id', <span class="mono break">{database.id}</span>],
      ]}
    />
  </Card>
)
