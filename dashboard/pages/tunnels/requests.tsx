import { useState } from 'preact/hooks'
import type { TunnelRequest } from '../../api/types.ts'
import { otherMessages } from '../../field-messages.ts'
import { bytes, duration, fullTime, longNumber } from '../../format.ts'
import { Facts, Failure, Pill } from '../../parts/basics.tsx'
import { Choice, TextField } from '../../parts/form.tsx'
import { Icon } from '../../parts/icons.tsx'
import { apiPath } from '../../router.ts'
import { RequestTable } from './request-table.tsx'
import { type Filters, type RequestStream, useRequestStream } from './request-stream.ts'
import type { TunnelTabProps } from './tab-props.ts'

const NO_FILTERS: Filters = { method: '', statusClass: '', sourceIp: '', pathPrefix: '', origin: '' }
const FIELDS = ['sourceIp', 'pathPrefix']

const options = (all: string, names: readonly string[]) => [['', all] as const, ...names.map((name) => [name, name] as const)]
const METHODS = options('All methods', ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const CLASSES = options('All statuses', ['1xx', '2xx', '3xx', '4xx', '5xx'])
const ORIGINS = [
  ['', 'All answers'],
  ['backend', 'by your server'],
  ['edge', 'by the edge'],
] as const

/** Live tail of the requests of a tunnel, with filters, pause, and details of the selected request. */
export function RequestsTab({ access, tunnel }: TunnelTabProps) {
  const [typed, setTyped] = useState(NO_FILTERS)
  const [filters, setFilters] = useState(NO_FILTERS)
  const stream = useRequestStream(apiPath(access, 'tunnels', tunnel.id, 'requests'), filters)
  const [selected, setSelected] = useState<TunnelRequest>()

  const choose = (change: Partial<Filters>) => {
    setTyped({ ...typed, ...change })
    setFilters({ ...filters, ...change })
  }
  const apply = (event: Event) => {
    event.preventDefault()
    setFilters({ ...typed, sourceIp: typed.sourceIp.trim() })
  }
  const rest = otherMessages(stream.failure, FIELDS)
  return (
    <>
      <form class="filters" onSubmit={apply} aria-label="Filters">
        <Choice
          {...{ label: 'Method', field: 'method', value: typed.method, options: METHODS, onText: (method) => choose({ method }) }}
        />
        <Choice
          {...{
            label: 'Status',
            field: 'statusClass',
            value: typed.statusClass,
            options: CLASSES,
            onText: (statusClass) => choose({ statusClass }),
          }}
        />
        <Choice
          {...{ label: 'Answer', field: 'origin', value: typed.origin, options: ORIGINS, onText: (origin) => choose({ origin }) }}
        />
        <TextField
          {...{
            label: 'Path begins with',
            field: 'pathPrefix',
            failure: stream.failure,
            value: typed.pathPrefix,
            onText: (pathPrefix) => setTyped({ ...typed, pathPrefix }),
          }}
        />
        <TextField
          {...{
            label: 'Client address',
            field: 'sourceIp',
            failure: stream.failure,
            value: typed.sourceIp,
            onText: (sourceIp) => setTyped({ ...typed, sourceIp }),
          }}
        />
        <button type="submit" class="button">
          Apply
        </button>
      </form>
      {rest !== undefined && <Failure failure={{ message: rest }} />}
      <StreamBar stream={stream} />
      <div class={selected ? 'tail with-details' : 'tail'}>
        <RequestTable requests={stream.requests} selected={selected} onSelect={setSelected} />
        {selected && <Details request={selected} onClose={() => setSelected(undefined)} />}
      </div>
    </>
  )
}

function StreamBar({ stream: { state, isPaused, missed, sample, pause, requests } }: { stream: RequestStream }) {
  return (
    <div class="stream-bar">
      <StreamPill state={state} isPaused={isPaused} />
      <span class="sub">the newest {requests.length}</span>
      {sample && (
        <span class="sub" role="status">
          showing {sample.shown} of about {longNumber(sample.of)} requests a second
        </span>
      )}
      <button type="button" class="button small" aria-pressed={isPaused} onClick={() => pause(!isPaused)}>
        <Icon name={isPaused ? 'play' : 'pause'} />
        {isPaused ? `Continue${missed > 0 ? ` (${missed} new)` : ''}` : 'Pause'}
      </button>
    </div>
  )
}

function StreamPill({ state, isPaused }: Pick<RequestStream, 'state' | 'isPaused'>) {
  if (isPaused) return <Pill tone="warn">paused</Pill>
  if (state === 'live')
    return (
      <Pill tone="good" live>
        live
      </Pill>
    )
  return <Pill tone="plain">{state === 'connecting' ? 'connecting' : 'interrupted, connecting again'}</Pill>
}

function Details({ request, onClose }: { request: TunnelRequest; onClose: () => void }) {
  const { id, timestamp, method, path, status, durationMs, bytesIn, bytesOut, sourceIp, origin, reason, protocol } = request
  return (
    <aside class="card details" aria-label="Details of the request">
      <header class="card-head">
        <h2>Request</h2>
        <button type="button" class="button small quiet" onClick={onClose}>
          <Icon name="close" />
          <span class="hidden">Close</span>
        </button>
      </header>
      <Facts
        rows={[
          ['Method', <span class="mono">{method}</span>],
          ['Path', <span class="mono break">{path}</span>],
          ['Status', String(status)],
          ['Answered by', origin === 'edge' ? 'the edge' : 'your server'],
          ...(reason === null ? [] : [['Reason', <span class="mono">{reason}</span>] as const]),
          ['Time', fullTime(timestamp)],
          ['Duration', duration(durationMs)],
          ['Received', bytes(bytesIn)],
          ['Sent', bytes(bytesOut)],
          ['Client', <span class="mono break">{sourceIp}</span>],
          ['Protocol', protocol],
          ['Id', <span class="mono break">{id}</span>],
        ]}
      />
    </aside>
  )
}
