import { useEffect } from 'preact/hooks'
import type { Access } from '../access.ts'
import { Empty } from '../parts/basics.tsx'
import type { Route } from '../router.ts'
import { AuditPage } from './audit.tsx'
import { DatabasePage } from './databases/database.tsx'
import { DatabasesPage } from './databases/databases.tsx'
import { NewDatabasePage } from './databases/new-database.tsx'
import { DedicatedDatabasePage } from './dedicated/dedicated-database.tsx'
import { DedicatedDatabasesPage } from './dedicated/dedicated-databases.tsx'
import { NewDedicatedDatabasePage } from './dedicated/new-dedicated-database.tsx'
import { NewTunnelPage } from './tunnels/new-tunnel.tsx'
import { TunnelPage } from './tunnels/tunnel.tsx'
import { TunnelsPage } from './tunnels/tunnels.tsx'

const TITLES: Readonly<Record<Route['page'], string>> = {
  start: 'Dashboard',
  unknown: 'Not found',
  tunnels: 'Tunnels',
  'new-tunnel': 'New tunnel',
  tunnel: 'Tunnel',
  databases: 'Databases',
  'new-database': 'New database',
  database: 'Database',
  'dedicated-databases': 'Dedicated databases',
  'new-dedicated-database': 'New dedicated database',
  'dedicated-database': 'Dedicated database',
  audit: 'Audit log',
}

/** Page of a route. `access` is undefined where the caller has no role. */
export function Page({ route, access }: { route: Route; access: Access | undefined }) {
  const title = TITLES[route.page]
  useEffect(() => void (document.title = `${title} · Mooring`), [title])
  if (!access) return <NotFound />
  return <PageOf route={route} access={access} />
}

function PageOf({ route, access }: { route: Route; access: Access }) {
  switch (route.page) {
    case 'tunnels':
      return <TunnelsPage access={access} />
    case 'new-tunnel':
      return <NewTunnelPage access={access} />
    case 'tunnel':
      return <TunnelPage key={route.id} access={access} id={route.id} tab={route.tab} />
    case 'databases':
      return <DatabasesPage access={access} />
    case 'new-database':
      return <NewDatabasePage access={access} />
    case 'database':
      return <DatabasePage key={route.id} access={access} id={route.id} />
    case 'dedicated-databases':
      return <DedicatedDatabasesPage access={access} />
    case 'new-dedicated-database':
      return <NewDedicatedDatabasePage access={access} />
    case 'dedicated-database':
      return <DedicatedDatabasePage key={route.id} access={access} id={route.id} />
    case 'audit':
      return <AuditPage access={access} />
    default:
      return <NotFound />
  }
}

const NotFound = () => (
  <Empty icon="search" title="Nothing is here">
    <p>The address is wrong, or you have no role in this namespace.</p>
  </Empty>
)
