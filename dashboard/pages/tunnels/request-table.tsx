import type { VNode } from 'preact'
import { useRef, useState } from 'preact/hooks'
import type { TunnelRequest } from '../../api/types.ts'
import { bytes, clockTime, duration } from '../../format.ts'
import { Empty } from '../../parts/basics.tsx'
import { rowsInView } from './rows-in-view.ts'

/** Height of a row in pixels, as in styles/pages.css. */
const ROW_PX = 34

interface RequestsProps {
  readonly requests: readonly TunnelRequest[]
  readonly selected: TunnelRequest | undefined
  readonly onSelect: (request: TunnelRequest) => void
}

/** Requests, newest first. Only rows in view are rendered, so that the page keeps up with thousands of requests a second. */
export function RequestTable({ requests, selected, onSelect }: RequestsProps) {
  const [rows] = useState(() => new WeakMap<TunnelRequest, VNode>())
  const box = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  if (requests.length === 0)
    return (
      <Empty icon="clock" title="No requests yet">
        <p>They appear here the moment they are answered.</p>
      </Empty>
    )
  /** Returns the node of a row. A row never changes, so its node is made once, and a frame costs only its new rows. */
  const rowOf = (request: TunnelRequest): VNode => {
    if (request === selected) return <RequestRow key={request.id} {...{ request, onSelect }} isSelected />
    const known = rows.get(request) ?? <RequestRow key={request.id} {...{ request, onSelect }} />
    rows.set(request, known)
    return known
  }
  const { first, last } = rowsInView({
    top,
    height: box.current?.clientHeight ?? innerHeight,
    rowHeight: ROW_PX,
    count: requests.length,
  })
  return (
    <div
      class="card flush scroll"
      tabIndex={0}
      role="region"
      aria-label="Requests"
      ref={box}
      onScroll={({ currentTarget }) => setTop(currentTarget.scrollTop)}
    >
      <table class="requests" aria-rowcount={requests.length + 1}>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Method</th>
            <th scope="col">Status</th>
            <th scope="col">Path</th>
            <th scope="col" class="number">
              Duration
            </th>
            <th scope="col" class="number wide-only">
              Size
            </th>
            <th scope="col" class="wide-only">
              Client
            </th>
          </tr>
        </thead>
        <tbody>
          {first > 0 && <Space rows={first} />}
          {requests.slice(first, last).map(rowOf)}
          {last < requests.length && <Space rows={requests.length - last} />}
        </tbody>
      </table>
    </div>
  )
}

interface RowProps extends Pick<RequestsProps, 'onSelect'> {
  readonly request: TunnelRequest
  readonly isSelected?: boolean
}

const RequestRow = ({ request, onSelect, isSelected = false }: RowProps) => (
  <tr class={isSelected ? 'selected' : ''} onClick={() => onSelect(request)}>
    <td class="nowrap mono">{clockTime(request.timestamp)}</td>
    <td class="mono method">{request.method}</td>
    <td>
      <span class={`status class-${Math.floor(request.status / 100)}`}>{request.status}</span>
    </td>
    <td class="path">
      <button type="button" class="plain mono" aria-pressed={isSelected}>
        {request.path}
      </button>
    </td>
    <td class="number nowrap">{duration(request.durationMs)}</td>
    <td class="number nowrap wide-only">{bytes(request.bytesOut)}</td>
    <td class="mono wide-only">{request.sourceIp}</td>
  </tr>
)

/** Empty row as high as the rows out of view. */
const Space = ({ rows }: { rows: number }) => <tr class="space" aria-hidden="true" style={{ height: `${rows * ROW_PX}px` }} />
