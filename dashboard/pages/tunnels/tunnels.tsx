import { useState } from 'preact/hooks'
import type { Access } from '../../access.ts'
import type { Tunnel } from '../../api/types.ts'
import { AddLink } from '../../parts/add-link.tsx'
import { Empty, Failure, Loading, Time } from '../../parts/basics.tsx'
import { Icon } from '../../parts/icons.tsx'
import { Link } from '../../parts/navigation.tsx'
import { useData } from '../../parts/use-data.ts'
import { apiPath, pathOf } from '../../router.ts'
import { addressOf, TunnelState } from './tunnel-state.tsx'

const POLL_MS = 3_000

interface TunnelsData {
  readonly tunnels: readonly Tunnel[]
  readonly nextCursor: string | null
}

/** Tunnels of a namespace with their state, and a search over them. */
export function TunnelsPage({ access }: { access: Access }) {
  const { data, failure } = useData<TunnelsData>(`${apiPath(access, 'tunnels')}?limit=200`, { everyMs: POLL_MS })
  const [text, setText] = useState('')
  const canEdit = access.role !== 'viewer'
  const add = canEdit && <AddLink {...{ access, counted: 'tunnels', to: pathOf(access, 'tunnels', 'new') }}>New tunnel</AddLink>
  return (
    <>
      <div class="page-head">
        <h1>Tunnels</h1>
        {add}
      </div>
      <Failure failure={failure} />
      {!data && !failure && <Loading />}
      {data?.tunnels.length === 0 && (
        <Empty icon="tunnel" title="Show what runs on your machine to the world">
          <p>A tunnel gives a port of your machine a public HTTPS address, by nothing but ssh.</p>
          {add}
        </Empty>
      )}
      {data && data.tunnels.length > 0 && <TunnelList {...{ access, data, text, setText }} />}
    </>
  )
}

interface ListProps {
  readonly access: Access
  readonly data: TunnelsData
  readonly text: string
  readonly setText: (text: string) => void
}

function TunnelList({ access, data, text, setText }: ListProps) {
  const wanted = text.trim().toLowerCase()
  const found = data.tunnels.filter(
    ({ name, hostname, createdBy }) =>
      wanted === '' || [name, hostname, createdBy].some((field) => field?.toLowerCase().includes(wanted)),
  )
  const connected = data.tunnels.filter((tunnel) => tunnel.connected).length
  return (
    <>
      <div class="filters">
        <label class="search">
          <Icon name="search" />
          <span class="hidden">Search by name, hostname or creator</span>
          <input
            {...{ type: 'search', value: text, placeholder: 'Search by name, hostname or creator', autocomplete: 'off' }}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
        <p class="count" role="status">
          {wanted === '' ? `${connected} of ${data.tunnels.length} connected` : `${found.length} of ${data.tunnels.length} found`}
        </p>
      </div>
      <ul class="rows" aria-label="Tunnels">
        {found.map((tunnel) => (
          <li key={tunnel.id}>
            <Link class="row" to={pathOf(access, 'tunnels', tunnel.hostname ?? tunnel.id)}>
              <span class="row-main">
                <strong>{tunnel.name}</strong>
                <span class="sub mono">{addressOf(tunnel)}</span>
              </span>
              <span class="row-side">
                {tunnel.lastConnectedAt === null ? (
                  'never connected'
                ) : (
                  <>
                    last connect <Time at={tunnel.lastConnectedAt} />
                  </>
                )}
              </span>
              <TunnelState tunnel={tunnel} />
            </Link>
          </li>
        ))}
      </ul>
      {data.nextCursor !== null && <p class="hint">These are the newest 200; the API lists the others.</p>}
    </>
  )
}
