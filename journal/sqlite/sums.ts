import type { DatabaseSync } from 'node:sqlite'
import { MINUTE_MS } from './layout.ts'

/** Request that was added to the file. */
export interface KeptRequest {
  readonly tunnel: number
  /** Creation time of its id, in milliseconds since the epoch. */
  readonly time: number
  readonly at: number
  readonly status: number
  readonly durationMs: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly edge: boolean
  readonly ip: string
}

/** Sum of a tunnel's requests in one minute. */
export interface MinuteSum {
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
