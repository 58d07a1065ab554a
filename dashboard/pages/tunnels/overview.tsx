import { useState } from 'preact/hooks'
import type { Stats } from '../../api/types.ts'
import { Card, Code, Copy, Empty, Facts, Failure, Loading, Time } from '../../parts/basics.tsx'
import { Chart } from '../../parts/chart.tsx'
import { useData } from '../../parts/use-data.ts'
import { WindowSwitch } from '../../parts/window-switch.tsx'
import { bytes, duration, longNumber, percent, shortNumber } from '../../format.ts'
import { apiPath } from '../../router.ts'
import { columnsOf, type Window } from '../../series.ts'
import { CertificateCard } from './certificate.tsx'
import type { TunnelTabProps } from './tab-props.ts'

const POLL_MS = 5_000

/** Statistics of a window with a chart, the certificate, and facts about the tunnel. */
export function OverviewTab({ access, tunnel }: TunnelTabProps) {
  const [window, setWindow] = useState<Window>('24h')
  const path = apiPath(access, 'tunnels', tunnel.id, 'stats')
  const { data, failure } = useData<{ stats: Stats }>(`${path}?window=${window}`, { everyMs: POLL_MS })
  return (
    <>
      {!tunnel.connected && tunnel.sshCommand !== null && (
        <Card title="Connect it">
          <p>Run this on the machine with your web server; it forwards to its port 3000.</p>
          <Code label="Command" text={tunnel.sshCommand} />
        </Card>
      )}
      <WindowSwitch {...{ window, onWindow: setWindow }} />
      <Failure failure={failure} />
      {data ? <Numbers stats={data.stats} window={window} /> : !failure && <Loading />}
      <div class="columns">
        {data && <TopAddresses stats={data.stats} />}
        <CertificateCard certificate={tunnel.certificate} path={apiPath(access, 'tunnels', tunnel.id)} />
        <About tunnel={tunnel} />
      </div>
    </>
  )
}

function Numbers({ stats, window }: { stats: Stats; window: Window }) {
  const { requests, averageResponseTimeMs, bandwidth, edgeAnswered } = stats
  return (
    <>
      <div class="tiles">
        <Tile
          name="Requests"
          value={shortNumber(requests)}
          more={edgeAnswered > 0 ? `${shortNumber(edgeAnswered)} answered by the edge` : ''}
        />
        <Tile
          name="Average response"
          value={averageResponseTimeMs === null ? '–' : duration(averageResponseTimeMs)}
          more="of your server"
        />
        <StatusTile stats={stats} />
        <Tile
          name="Bandwidth"
          value={bytes(bandwidth.bytesIn + bandwidth.bytesOut)}
          more={`${bytes(bandwidth.bytesIn)} in, ${bytes(bandwidth.bytesOut)} out`}
        />
      </div>
      <Card title="Requests over time">
        <Chart columns={columnsOf(stats, window)} />
      </Card>
    </>
  )
}

const Tile = ({ name, value, more }: { name: string; value: string; more: string }) => (
  <section class="tile" aria-label={name}>
    <h2>{name}</h2>
    <p class="value">{value}</p>
    <p class="sub">{more}</p>
  </section>
)

const CLASSES = ['2xx', '3xx', '4xx', '5xx'] as const

/** Share of each status class, as a bar and as numbers. */
function StatusTile({ stats: { statusClasses, requests } }: { stats: Stats }) {
  return (
    <section class="tile" aria-label="Status">
      <h2>Status</h2>
      <div class="share" aria-hidden="true">
        {CLASSES.map((name) => (
          <span key={name} class={`class-${name[0] ?? ''}`} style={{ flexGrow: statusClasses[name] }} />
        ))}
      </div>
      <ul class="classes">
        {CLASSES.map((name) => (
          <li key={name} title={longNumber(statusClasses[name])}>
            <span class={`key class-${name[0] ?? ''}`} aria-hidden="true" />
            {name} <strong>{percent(statusClasses[name], requests)}</strong>
          </li>
        ))}
      </ul>
    </section>
  )
}

function TopAddresses({ stats: { topClientIps, requests } }: { stats: Stats }) {
  return (
    <Card title="Top client addresses">
      {topClientIps.length === 0 ? (
        <Empty icon="clock" title="No requests in this window" />
      ) : (
        <ol class="ranks">
          {topClientIps.map(({ ip, requests: count }) => (
            <li key={ip}>
              <span class="bar" aria-hidden="true" style={{ width: `${(count / (topClientIps[0]?.requests ?? 1)) * 100}%` }} />
              <span class="mono break">{ip}</span>
              <span class="rank-count">
                {longNumber(count)} <span class="sub">{percent(count, requests)}</span>
              </span>
            </li>
          ))}
        </ol>
      )}
    </Card>
  )
}

function About({ tunnel }: { tunnel: TunnelTabProps['tunnel'] }) {
  const { id, hostname, endpoint, createdAt, createdBy, lastConnectedAt, expiresAt, sshCommand } = tunnel
  return (
    <Card title="About" actions={sshCommand !== null && <Copy text={sshCommand} label="Copy ssh command" />}>
      <Facts
        rows={[
          ['Hostname', <span class="mono">{hostname ?? 'not assigned yet'}</span>],
          ['SSH', <span class="mono">{endpoint ? `${endpoint.sshHost}:${endpoint.sshPort}` : '–'}</span>],
          ['Last connect', lastConnectedAt === null ? 'never' : <Time at={lastConnectedAt} />],
          ['Created', <Time at={createdAt} />],
          ['By', createdBy ?? 'unknown'],
          ['Expires', expiresAt === null ? 'never' : <Time at={expiresAt} />],
          ['Id', <span class="mono break">{id}</span>],
        ]}
      />
    </Card>
  )
}
