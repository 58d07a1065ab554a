import { useState } from 'preact/hooks'
import type { Access } from '../../access.ts'
import { call } from '../../api/client.ts'
import type { Tunnel } from '../../api/types.ts'
import { Copy, Failure, Loading } from '../../parts/basics.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { Icon } from '../../parts/icons.tsx'
import { Link, navigate } from '../../parts/navigation.tsx'
import { useData } from '../../parts/use-data.ts'
import { apiPath, pathOf, type TunnelTab } from '../../router.ts'
import { AuditTable } from '../audit.tsx'
import { WebhooksTab } from '../webhooks/webhooks.tsx'
import { ConnectionsTab } from './connections.tsx'
import { ExplainTab } from './explain.tsx'
import { OpenTunnel } from './connect-steps.tsx'
import { OverviewTab } from './overview.tsx'
import { PasswordsTab } from './passwords.tsx'
import { RequestsTab } from './requests.tsx'
import { SettingsTab } from './settings.tsx'
import type { TunnelTabProps } from './tab-props.ts'
import { addressOf, TunnelState } from './tunnel-state.tsx'

const POLL_MS = 3_000

const TABS: readonly (readonly [tab: TunnelTab, label: string])[] = [
  ['overview', 'Overview'],
  ['requests', 'Live requests'],
  ['connections', 'Connections'],
  ['settings', 'Settings'],
  ['passwords', 'Passwords'],
  ['webhooks', 'Webhooks'],
  ['explain', 'Explain'],
  ['audit', 'Audit'],
]

interface TunnelPageProps {
  readonly access: Access
  readonly id: string
  readonly tab: TunnelTab
}

export function TunnelPage({ access, id, tab }: TunnelPageProps) {
  const loaded = useData<{ tunnel: Tunnel }>(apiPath(access, 'tunnels', id), { everyMs: POLL_MS })
  const tunnel = loaded.data?.tunnel
  // The tab is hidden until this call succeeds: an older API without webhooks answers 404.
  const hooks = useData(tunnel && `${apiPath(access, 'tunnels', tunnel.id, 'webhooks')}?limit=1`)
  const tabs = TABS.filter(([name]) => name !== 'webhooks' || hooks.data !== undefined)
  if (!tunnel) return loaded.failure ? <Failure failure={loaded.failure} /> : <Loading />
  return (
    <>
      <p class="crumbs">
        <Link to={pathOf(access, 'tunnels')}>Tunnels</Link>
      </p>
      <TunnelHead access={access} tunnel={tunnel} />
      <nav class="tabs" aria-label="Parts of the tunnel">
        {tabs.map(([name, label]) => (
          <Link key={name} to={pathOf(access, 'tunnels', id, name)} current={name === tab}>
            {label}
          </Link>
        ))}
      </nav>
      <Failure failure={loaded.failure} />
      <TabContent tab={tabs.some(([name]) => name === tab) ? tab : 'overview'} {...{ access, tunnel, loaded }} />
    </>
  )
}

function TunnelHead({ access, tunnel }: { access: Access; tunnel: Tunnel }) {
  const [isDeleting, setDeleting] = useState(false)
  const remove = async () => {
    await call('DELETE', apiPath(access, 'tunnels', tunnel.id))
    navigate(pathOf(access, 'tunnels'))
  }
  return (
    <div class="page-head">
      <div class="head-main">
        <h1>
          {tunnel.name} <TunnelState tunnel={tunnel} />
        </h1>
        <p class="address">
          <span class="mono">{addressOf(tunnel)}</span>
          {tunnel.directUrl !== null && <Copy text={tunnel.directUrl} label="Copy address" />}
        </p>
      </div>
      <div class="buttons">
        {tunnel.connected && <OpenTunnel tunnel={tunnel} />}
        {access.role !== 'viewer' && (
          <button type="button" class="button" onClick={() => setDeleting(true)}>
            <Icon name="trash" />
            Delete
          </button>
        )}
      </div>
      {isDeleting && (
        <Confirm title={`Delete ${tunnel.name}?`} verb="Delete tunnel" onConfirm={remove} onClose={() => setDeleting(false)}>
          <p>
            Its clients are disconnected and its address <strong class="mono break">{addressOf(tunnel)}</strong> is released: no
            tunnel gets it again by choice. This cannot be undone.
          </p>
        </Confirm>
      )}
    </div>
  )
}

function TabContent({ tab, ...props }: TunnelTabProps & { tab: TunnelTab }) {
  switch (tab) {
    case 'requests':
      return <RequestsTab {...props} />
    case 'connections':
      return <ConnectionsTab {...props} />
    case 'settings':
      return <SettingsTab key={props.tunnel.id} {...props} />
    case 'passwords':
      return <PasswordsTab {...props} />
    case 'webhooks':
      return <WebhooksTab {...props} />
    case 'explain':
      return <ExplainTab {...props} />
    case 'audit':
      return <AuditTable access={props.access} id={props.tunnel.id} />
    default:
      return <OverviewTab {...props} />
  }
}
