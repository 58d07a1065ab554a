import type { DatabaseMetrics } from './api/types.ts'
import type { Window } from './series.ts'

const MINUTE_S = 60
/** Interval of the points of the API in seconds. */
const STEP_S: Readonly<Record<Window, number>> = { '1h': MINUTE_S, '24h': 10 * MINUTE_S, '7d': 3_600 }

export type SampleField = Exclude<keyof DatabaseMetrics['series'][number], 'at'>

/** Columns of a chart of one field: times in seconds since the epoch, and values, null in intervals without a sample. */
export type SampleColumns = readonly [at: number[], values: (number | null)[]]

/** Returns one value for each interval of a window. */
export function sampleColumns(
  { from, to, series }: Pick<DatabaseMetrics, 'from' | 'to' | 'series'>,
  window: Window,
  field: SampleField,
): SampleColumns {
  const step = STEP_S[window]
  const first = Math.floor(Date.parse(from) / 1e3 / step)
  const last = Math.floor(Date.parse(to) / 1e3 / step)
  const at = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step)
  const values = new Map(series.map((sample) => [Math.floor(Date.parse(sample.at) / 1e3 / step), sample[field]]))
  return [at, at.map((time) => values.get(time / step) ?? null)]
}

/** Description of a chart for screen readers. */
export function sampleSummary(name: string, [, values]: SampleColumns, text: (value: number) => string): string {
  const known = values.filter((value) => value !== null)
  const last = known.at(-1)
  if (last === undefined) return `${name} over time: no values in this window.`
  return `${name} over time: from ${text(Math.min(...known))} to ${text(Math.max(...known))}, now ${text(last)}.`
}
