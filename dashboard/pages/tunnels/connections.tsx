import { useState } from 'preact/hooks'
import { query } from '../../api/client.ts'
import type { Connection } from '../../api/types.ts'
import { duration } from '../../format.ts'
import { Empty, Failure, Loading, Pill, Time, type Tone } from '../../parts/basics.tsx'
import { Switch } from '../../parts/form.tsx'
import { useData } from '../../parts/use-data.ts'
import { apiPath } from '../../router.ts'
import type { TunnelTabProps } from './tab-props.ts'

const POLL_MS = 3_000
const TONES: Readonly<Record<Connection['type'], Tone>> = { connect: 'good', disconnect: 'plain', refused: 'bad' }

/** Connects and disconnects of the tunnel's clients, and on demand the refused logins. */
export function ConnectionsTab({ access, tunnel }: TunnelTabProps) {
  const [withRefused, setRefused] = useState(false)
  const path = `${apiPath(access, 'tunnels', tunnel.id, 'connections')}${query({ limit: '100', include: withRefused ? 'refused' : undefined })}`
  const { data, failure } = useData<{ connections: readonly Connection[] }>(path, { everyMs: POLL_MS })
  return (
    <>
      <Switch
        label="Refused logins"
        hint="Shows the logins that the edge refused, too."
        checked={withRefused}
        onSwitch={setRefused}
      />
      <Failure failure={failure} />
      {!data && !failure && <Loading />}
      {data?.connections.length === 0 && <Empty icon="clock" title="No connections yet" />}
      {data && data.connections.length > 0 && <Connections connections={data.connections} />}
    </>
  )
}

const Connections = ({ connections }: { connections: readonly Connection[] }) => (
  <div class="card flush scroll" tabIndex={0} role="region" aria-label="Connections">
    <table>
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">Event</th>
          <th scope="col">Client</th>
          <th scope="col">Login by</th>
          <th scope="col">Lasted</th>
          <th scope="col">Reason</th>
        </tr>
      </thead>
      <tbody>
        {connections.map(({ id, timestamp, type, clientIp, authMethod, keyFingerprint, passwordId, durationMs, reason }) => (
          <tr key={id}>
            <td class="nowrap">
              <Time at={timestamp} />
            </td>
            <td>
              <Pill tone={TONES[type]}>{type}</Pill>
            </td>
            <td class="mono">{clientIp}</td>
            <td>
              {authMethod === 'token' ? 'password' : (authMethod ?? '–')}
              <span class="sub mono break">{keyFingerprint ?? passwordId}</span>
            </td>
            <td class="nowrap">{durationMs === null ? '' : duration(durationMs)}</td>
            <td>{reason}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)
