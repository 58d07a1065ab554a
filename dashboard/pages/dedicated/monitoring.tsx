import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import type { DatabaseMetrics, DedicatedDatabase } from '../../api/types.ts'
import { bytes, shortNumber } from '../../format.ts'
import { Card, Failure, Loading } from '../../parts/basics.tsx'
import { type Look, Plot } from '../../parts/chart.tsx'
import { Switch } from '../../parts/form.tsx'
import { useAction, useData } from '../../parts/use-data.ts'
import { WindowSwitch } from '../../parts/window-switch.tsx'
import { type SampleField, sampleColumns, sampleSummary } from '../../samples.ts'
import type { Window } from '../../series.ts'

const POLL_MS = 15_000

interface Shown extends Pick<Look, 'least' | 'most' | 'text' | 'kind'> {
  readonly field: SampleField
  readonly name: string
}

const percentage = (share: number): string => `${Math.round(share * 1_000) / 10} %`
const decimal = (value: number): string => (value < 10 ? String(Math.round(value * 10) / 10) : shortNumber(Math.round(value)))

const SHOWN: readonly Shown[] = [
  { field: 'connections', name: 'Connections', kind: 'line', least: 5, text: decimal },
  { field: 'transactionsPerSecond', name: 'Transactions per second', kind: 'line', least: 5, text: decimal },
  { field: 'cacheHitRatio', name: 'Cache hit ratio', kind: 'line', least: 1, most: 1, text: percentage },
  { field: 'slowStatements', name: 'Slow statements', kind: 'bars', least: 5, text: decimal },
  { field: 'sizeBytes', name: 'Size', kind: 'line', least: 1_048_576, text: bytes },
]

interface MonitoringProps {
  readonly database: DedicatedDatabase
  readonly path: string
  readonly canEdit: boolean
  /** Called after monitoring was turned on or off. */
  readonly onChanged: () => void
}

/** Switch of the add-on, and the charts of what was measured. */
export function Monitoring({ database, path, canEdit, onChanged }: MonitoringProps) {
  const { isBusy, failure, run } = useAction()
  const turn = async (monitoring: boolean) => {
    if (await run(() => call('PATCH', path, { body: { monitoring } }))) onChanged()
  }
  return (
    <>
      <h2 class="section">Monitoring</h2>
      <Card title="Measure this database">
        <fieldset class="settings" disabled={!canEdit || isBusy}>
          <Switch
            {...{ label: 'Monitoring', checked: database.monitoring, onSwitch: (on) => void turn(on) }}
            hint="Values are measured every 30 seconds and kept for seven days. On Kubernetes, a change restarts the server."
          />
        </fieldset>
        <Failure failure={failure} />
      </Card>
      {database.monitoring && <Charts path={path} />}
    </>
  )
}

function Charts({ path }: { path: string }) {
  const [window, setWindow] = useState<Window>('1h')
  const { data, failure } = useData<{ metrics: DatabaseMetrics }>(`${path}/metrics?window=${window}`, { everyMs: POLL_MS })
  return (
    <>
      <WindowSwitch {...{ window, onWindow: setWindow }} />
      <Failure failure={failure} />
      {!data && !failure && <Loading />}
      <div class="columns">
        {data && SHOWN.map((shown) => <FieldChart key={shown.field} {...{ shown, window, metrics: data.metrics }} />)}
      </div>
    </>
  )
}

/** Chart of one field, with its latest value in the title. */
function FieldChart({ shown, window, metrics }: { shown: Shown; window: Window; metrics: DatabaseMetrics }) {
  const { field, name, text, ...look } = shown
  const columns = sampleColumns(metrics, window, field)
  const latest = metrics.latest?.[field]
  return (
    <Card title={latest === null || latest === undefined ? name : `${name}: ${text(latest)}`}>
      <Plot
        columns={columns}
        look={{ ...look, text, series: [{ label: name, colour: '--accent' }] }}
        summary={sampleSummary(name, columns, text)}
      />
    </Card>
  )
}
