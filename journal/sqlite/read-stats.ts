import type { DatabaseSync } from 'node:sqlite'
import { averageOf, type Stats, type WholeSpan } from '../port.ts'
import { addClients, type Clients, HOUR_MINUTES, topOf } from './client-counts.ts'
import { DAY_MS, MINUTE_MS } from './layout.ts'

const TOP_CLIENTS = 10

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

/** Creates a reader of a tunnel's requests by address, over the minutes from `first` to before `end`. */
export function createClientReader(db: DatabaseSync): (tunnel: number, first: number, end: number) => Clients {
  const hours = db.prepare('SELECT minute, clients FROM client_hours WHERE tunnel = ? AND minute >= ? AND minute < ?')
  const minutes = db.prepare('SELECT clients FROM client_minutes WHERE tunnel = ? AND minute >= ? AND minute < ?')

  return function clientsOf(tunnel, first, end) {
    const clients: Clients = new Map()
    const addMinutes = (from: number, to: number) => {
      for (const row of minutes.all(tunnel, from, to)) addClients(clients, String(row.clients))
    }
    // Reads the sums of whole hours, and the minutes between them.
    let next = first
    for (const { minute, clients: text } of hours.all(tunnel, first, end - HOUR_MINUTES + 1)) {
      addMinutes(next, Number(minute))
      addClients(clients, String(text))
      next = Number(minute) + HOUR_MINUTES
    }
    addMinutes(next, end)
    return clients
  }
}
