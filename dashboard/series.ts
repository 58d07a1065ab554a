import type { Stats } from './api/types.ts'

export const WINDOWS = ['1h', '24h', '7d'] as const
export type Window = (typeof WINDOWS)[number]

const MINUTE_S = 60
/** Width of one bar in seconds. The API's items are of one minute, with the window 7d of one hour. */
const BAR_S: Readonly<Record<Window, number>> = { '1h': MINUTE_S, '24h': 15 * MINUTE_S, '7d': 3_600 }

/** Columns of the chart: times in seconds since the epoch, requests, errors. */
export type Columns = readonly [at: number[], requests: number[], errors: number[]]

/** Sums the items of a series into bars of equal width, the empty ones included. */
export function columnsOf({ from, to, series }: Pick<Stats, 'from' | 'to' | 'series'>, window: Window): Columns {
  const width = BAR_S[window]
  const first = Math.floor(Date.parse(from) / 1e3 / width)
  const last = Math.ceil(Date.parse(to) / 1e3 / width)
  const at = Array.from({ length: last - first }, (_, index) => (first + index) * width)
  const columns: Columns = [at, at.map(() => 0), at.map(() => 0)]
  for (const item of series) {
    const index = Math.floor(Date.parse(item.at) / 1e3 / width) - first
    if (index < 0 || index >= at.length) continue
    columns[1][index] = (columns[1][index] ?? 0) + item.requests
    columns[2][index] = (columns[2][index] ?? 0) + item.errors
  }
  return columns
}

/** Description of a chart for screen readers. */
export function chartSummary([at, requests, errors]: Columns): string {
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0)
  const most = Math.max(0, ...requests)
  const peak = at[requests.indexOf(most)]
  const when = most === 0 || peak === undefined ? '' : `; the most, ${most}, from ${new Date(peak * 1e3).toLocaleString('en-GB')}`
  return `Requests over time: ${sum(requests)} in all, ${sum(errors)} of them with a status of 5xx${when}.`
}
