import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { chartSummary, type Columns } from '../series.ts'

const HEIGHT = 220

/** Look of a chart, which stays the same for the lifetime of its element. */
export interface Look {
  /** Series behind the times, each with the CSS variable of its colour. */
  readonly series: readonly { readonly label: string; readonly colour: string }[]
  readonly kind: 'bars' | 'line'
  /** Minimum height of the vertical axis. */
  readonly least: number
  /** Maximum height of the vertical axis; unbounded when absent. */
  readonly most?: number
  readonly text: (value: number) => string
  /** Distances of the marks on the vertical axis. */
  readonly marks?: number[]
}

const MARKS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6]
const REQUESTS: Look = {
  series: [
    { label: 'Requests', colour: '--accent' },
    { label: '5xx', colour: '--bad' },
  ],
  kind: 'bars',
  least: 5,
  text: String,
  marks: MARKS,
}

/** Bars of requests, with those that failed in front of them. */
export const Chart = ({ columns }: { columns: Columns }) => (
  <Plot columns={columns} look={REQUESTS} summary={chartSummary(columns)} />
)

interface PlotProps {
  /** Times in seconds since the epoch, then the values of each series; null where there is none. */
  readonly columns: readonly (readonly (number | null)[])[]
  readonly look: Look
  /** Description for screen readers. */
  readonly summary: string
}

/** Chart of values over time. */
export function Plot({ columns, look, summary }: PlotProps) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)

  useEffect(() => {
    const element = box.current
    if (!element) return
    const empty = [[], ...look.series.map(() => [])] as uPlot.AlignedData
    const draw = () => {
      plot.current?.destroy()
      plot.current = new uPlot(optionsOf(element, look), empty, element)
      plot.current.setData(latest.current)
    }
    draw()
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }))
    resized.observe(element)
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', draw)
    return () => {
      resized.disconnect()
      scheme.removeEventListener('change', draw)
      plot.current?.destroy()
    }
  }, [])

  const latest = useRef<uPlot.AlignedData>([[]])
  latest.current = columns.map((column) => [...column]) as unknown as uPlot.AlignedData
  useEffect(() => plot.current?.setData(latest.current), [columns])
  return <div class="chart" role="img" aria-label={summary} ref={box} />
}

function optionsOf(element: HTMLElement, look: Look): uPlot.Options {
  const style = getComputedStyle(element)
  const colour = (name: string): string => resolved(element, style.getPropertyValue(name))
  const axis = {
    stroke: colour('--muted'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  }
  const bars = uPlot.paths.bars?.({ size: [0.8, 40], radius: 0.2 })
  const drawn = (name: string): Partial<uPlot.Series> =>
    look.kind === 'line' ? { width: 2 } : { fill: colour(name), width: 0, ...(bars && { paths: bars }) }
  const series = ({ label, colour: name }: Look['series'][number]): uPlot.Series => ({
    label,
    stroke: colour(name),
    points: { show: look.kind === 'line', size: 4 },
    value: (_plot, value: number | null) => (value === null ? '–' : look.text(value)),
    ...drawn(name),
  })
  const top = (high: number): number => Math.min(look.most ?? Infinity, Math.max(look.least, high * 1.1))
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [12, 8, 0, 0],
    cursor: { y: false, drag: { x: false, y: false } },
    legend: { live: true },
    scales: { y: { range: (_plot, _low, high) => [0, top(high)] } },
    axes: [
      { ...axis, values: (_plot, times) => tickLabels(times), space: 70 },
      {
        ...axis,
        size: look.marks ? 44 : 64,
        values: (_plot, values) => values.map(look.text),
        ...(look.marks && { incrs: look.marks }),
      },
    ],
    series: [
      {
        label: 'Time',
        value: (_plot, at) =>
          at ? new Date(at * 1e3).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' }) : '–',
      },
      ...look.series.map(series),
    ],
  }
}

const hour = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

/** Time of each tick, with the day below where it begins. */
function tickLabels(times: readonly number[]): string[] {
  const dates = times.map((time) => new Date(time * 1e3))
  return dates.map((date, index) => {
    const isNewDay = index === 0 || date.getDate() !== dates[index - 1]?.getDate()
    return isNewDay ? `${hour.format(date)}\n${day.format(date)}` : hour.format(date)
  })
}

/** A canvas knows no `light-dark()`: the browser computes the colour of an element. */
function resolved(parent: HTMLElement, colour: string): string {
  const probe = parent.appendChild(document.createElement('span'))
  probe.style.color = colour
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
