import type { DatabaseSync } from 'node:sqlite'
import type { KeptRequest } from './chunks.ts'
import { MINUTE_MS } from '../search.ts'
import { DAY_MS } from './layout.ts'
import { averageOf, type Stats, type WholeSpan } from '../port.ts'
import { createClientReader, HOUR_MINUTES, topOf } from './client-counts.ts'

const TOP_CLIENTS = 10

/** Sum of a tunnel's requests in one minute. */
interface MinuteSum {
  readonly tunnel: number
  readonly minute: number
  requests: number
  /** Sum of the backend's response times, in milliseconds. */
  durationMs: number
  /** Number of requests by the first digit of their status, 1 to 5. */
  readonly classes: [number, number, number, number, number]
  edge: number
  bytesIn: number
  bytesOut: number
  firstAt: number
  lastAt: number
}

/** Adds sums to those in the file. Call `add` within a transaction. */
export function createSums(db: DatabaseSync): { add(sums: readonly MinuteSum[]): void } {
  const put = db.prepare(`
    INSERT INTO minutes (tunnel, minute, requests, ms, s1, s2, s3, s4, s5, edge, bytes_in, bytes_out, first_at, last_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, ms = ms + excluded.ms, s1 = s1 + excluded.s1,
      s2 = s2 + excluded.s2, s3 = s3 + excluded.s3, s4 = s4 + excluded.s4, s5 = s5 + excluded.s5, edge = edge + excluded.edge,
      bytes_in = bytes_in + excluded.bytes_in, bytes_out = bytes_out + excluded.bytes_out,
      first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at)`)
  return {
    add(sums) {
      for (const { tunnel, minute, requests, durationMs, classes, edge, bytesIn, bytesOut, firstAt, lastAt } of sums) {
        put.run(tunnel, minute, requests, durationMs, ...classes, edge, bytesIn, bytesOut, firstAt, lastAt)
      }
    },
  }
}

/** Sums up requests by tunnel and minute. Pure. */
export function sumsOf(requests: readonly KeptRequest[]): readonly MinuteSum[] {
  const sums = new Map<string, MinuteSum>()
  let sum: MinuteSum | undefined
  for (const request of requests) {
    const minute = Math.floor(request.time / MINUTE_MS)
    // Mostly it is the previous request's sum.
    if (sum?.tunnel !== request.tunnel || sum.minute !== minute) {
      const key = `${request.tunnel} ${minute}`
      sum = sums.get(key) ?? emptySum(request, minute)
      sums.set(key, sum)
    }
    add(sum, request)
  }
  return [...sums.values()]
}

function emptySum({ tunnel, at }: KeptRequest, minute: number): MinuteSum {
  const nothing = { requests: 0, durationMs: 0, edge: 0, bytesIn: 0, bytesOut: 0 }
  return { tunnel, minute, ...nothing, classes: [0, 0, 0, 0, 0], firstAt: at, lastAt: at }
}

function add(sum: MinuteSum, { at, status, durationMs, bytesIn, bytesOut, edge }: KeptRequest): void {
  sum.requests += 1
  sum.bytesIn += bytesIn
  sum.bytesOut += bytesOut
  if (edge) sum.edge += 1
  else sum.durationMs += durationMs
  const index = Math.min(Math.max(1, Math.floor(status / 100)), 5) - 1
  sum.classes[index] = (sum.classes[index] ?? 0) + 1
  sum.firstAt = Math.min(sum.firstAt, at)
  sum.lastAt = Math.max(sum.lastAt, at)
}

/** Sums up the requests of a tunnel over the minutes that a span touches. */
export function createStatsReader(db: DatabaseSync): (tunnel: string, span: WholeSpan) => Stats {
  const numberOf = db.prepare('SELECT number FROM tunnels WHERE uid = ?')
  const totals = db.prepare(`
    SELECT coalesce(sum(requests), 0) AS requests, coalesce(sum(ms), 0) AS ms, coalesce(sum(s1), 0) AS s1, coalesce(sum(s2), 0) AS s2,
      coalesce(sum(s3), 0) AS s3, coalesce(sum(s4), 0) AS s4, coalesce(sum(s5), 0) AS s5, coalesce(sum(edge), 0) AS edge,
      coalesce(sum(bytes_in), 0) AS bytesIn, coalesce(sum(bytes_out), 0) AS bytesOut
    FROM minutes WHERE tunnel = ? AND minute >= ? AND minute < ?`)
  const series = db.prepare(`
    SELECT minute / CAST(?4 AS INTEGER) * CAST(?4 AS INTEGER) AS start, sum(requests) AS requests, sum(s5) AS errors
    FROM minutes WHERE tunnel = ?1 AND minute >= ?2 AND minute < ?3 GROUP BY start ORDER BY start`)
  const clientsOf = createClientReader(db)

  return function stats(tunnel, { from, to }) {
    const number = Number(numberOf.get(tunnel)?.number ?? -1)
    const first = Math.floor(from / MINUTE_MS)
    const end = Math.max(first, Math.ceil(to / MINUTE_MS))
    const step = to - from > DAY_MS ? HOUR_MINUTES : 1
    const sum = totals.get(number, first, end) as unknown as Totals
    return {
      requests: sum.requests,
      averageResponseTimeMs: averageOf(sum),
      statusClasses: { '1xx': sum.s1, '2xx': sum.s2, '3xx': sum.s3, '4xx': sum.s4, '5xx': sum.s5 },
      edgeAnswered: sum.edge,
      bytesIn: sum.bytesIn,
      bytesOut: sum.bytesOut,
      topClientIps: topOf(clientsOf(number, first, end), TOP_CLIENTS).map(([ip, requests]) => ({ ip, requests })),
      series: series.all(number, first, end, step).map(({ start, requests, errors }) => ({
        at: Number(start) * MINUTE_MS,
        requests: Number(requests),
        errors: Number(errors),
      })),
    }
  }
}

interface Totals extends Record<'s1' | 's2' | 's3' | 's4' | 's5', number> {
  readonly requests: number
  /** Sum of the backend's response times, in milliseconds. */
  readonly ms: number
  readonly edge: number
  readonly bytesIn: number
  readonly bytesOut: number
}
