import { averageOf, type Stats, type WholeSpan } from '../port.ts'
import { MINUTE_MS } from '../search.ts'
import { isUuid } from './record-format.ts'
import type { Ask } from './pool.ts'

const HOUR_MINUTES = 60
const DAY_MS = 86_400_000
const TOP_CLIENTS = 10

/**
 * SQL for the sum of a column as floating point: exact to 2^53, and many times faster than numeric, the type of sums of bigint.
 */
const sum = (column: string): string => `coalesce(sum(${column}::float8), 0)`
const SUMMED = ['requests', 'ms', 's1', 's2', 's3', 's4', 's5', 'edge', 'bytes_in', 'bytes_out']
/**
 * Query for the totals in one row, with `minute requests errors` of all minutes as one text: a row for each minute takes as long
 * as the rest of the query.
 */
const SUMS = `
  SELECT ${SUMMED.map((name) => `${sum(name)} AS ${name}`).join(', ')},
    coalesce(string_agg(minute || ' ' || requests || ' ' || s5, ',' ORDER BY minute), '') AS minutes
  FROM journal.minutes WHERE tunnel = $1 AND minute >= $2 AND minute < $3`
/** Query for the top clients: whole hours from the sums by hour, the rest at both ends by minute. */
const CLIENTS = `
  SELECT ip, ${sum('n')} AS requests FROM (
    SELECT unnest(ips) AS ip, unnest(requests) AS n FROM journal.client_hours WHERE tunnel = $1 AND minute >= $4 AND minute < $5
    UNION ALL
    SELECT unnest(ips), unnest(requests) FROM journal.client_minutes WHERE tunnel = $1 AND minute >= $2 AND minute < $4
    UNION ALL
    SELECT unnest(ips), unnest(requests) FROM journal.client_minutes WHERE tunnel = $1 AND minute >= $5 AND minute < $3
  ) AS clients GROUP BY ip ORDER BY requests DESC, ip LIMIT ${TOP_CLIENTS}`

/** Sums up the requests of a tunnel over the minutes that a span touches. */
export function createStatsReader(ask: Ask): (tunnel: string, span: WholeSpan) => Promise<Stats> {
  return async function stats(tunnel, { from, to }) {
    const first = Math.floor(from / MINUTE_MS)
    const end = Math.max(first, Math.ceil(to / MINUTE_MS))
    const step = to - from > DAY_MS ? HOUR_MINUTES : 1
    const firstHour = Math.min(Math.ceil(first / HOUR_MINUTES) * HOUR_MINUTES, end)
    const lastHour = Math.max(firstHour, Math.floor(end / HOUR_MINUTES) * HOUR_MINUTES)
    const [[total = {}], clients] = isUuid(tunnel)
      ? await Promise.all([ask(SUMS, [tunnel, first, end]), ask(CLIENTS, [tunnel, first, end, firstHour, lastHour])])
      : [[], []]
    const of = (column: string): number => Number(total[column] ?? 0)
    return {
      requests: of('requests'),
      averageResponseTimeMs: averageOf({ requests: of('requests'), edge: of('edge'), ms: of('ms') }),
      statusClasses: { '1xx': of('s1'), '2xx': of('s2'), '3xx': of('s3'), '4xx': of('s4'), '5xx': of('s5') },
      edgeAnswered: of('edge'),
      bytesIn: of('bytes_in'),
      bytesOut: of('bytes_out'),
      topClientIps: clients.map(({ ip, requests }) => ({ ip: String(ip), requests: Number(requests) })),
      series: seriesOf(typeof total.minutes === 'string' ? total.minutes : '', step),
    }
  }
}

/** Groups minutes, in order, by `step`. */
function seriesOf(minutes: string, step: number): Stats['series'] {
  const series: { at: number; requests: number; errors: number }[] = []
  if (minutes === '') return series
  for (const text of minutes.split(',')) {
    const [minute = 0, requests = 0, errors = 0] = text.split(' ').map(Number)
    const at = Math.floor(minute / step) * step * MINUTE_MS
    const last = series.at(-1)
    if (last?.at === at) {
      last.requests += requests
      last.errors += errors
    } else series.push({ at, requests, errors })
  }
  return series
}
