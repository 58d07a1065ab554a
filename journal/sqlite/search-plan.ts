import type { DatabaseSync } from 'node:sqlite'
import type { RequestFilter } from '../port.ts'
import { createConditions } from './conditions.ts'
import { DAY_MS, MINUTE_MS } from './layout.ts'

const DAY_MINUTES = DAY_MS / MINUTE_MS
/** Minutes that are looked at together. */
const CHUNK = 256
/** Requests of one range, about: between two ranges other readers get their turn. */
export const RANGE_ROWS = 20_000

/** A stretch of a tunnel's log in one day's table; half-open, by the times of ids in milliseconds since the epoch. */
export interface Range {
  readonly day: number
  readonly from: number
  readonly to: number
}

interface Minute {
  readonly minute: number
  readonly requests: number
}

/**
 * Where in a tunnel's log a search has to look, newest first: the sums tell of each minute whether it can hold anything that passes. A
 * search for last week's 502 reads some minutes instead of millions of rows.
 */
export function* searchPlan(db: DatabaseSync, number: number, filter: RequestFilter, newestMs: number): Generator<Range> {
  const narrow = narrowing(filter)
  const { where, values } = narrow
  const find = db.prepare(
    `SELECT minute, requests FROM minutes WHERE tunnel = ? AND minute <= ? AND ${where} ORDER BY minute DESC LIMIT ${CHUNK}`,
  )
  let next = Math.floor(newestMs / MINUTE_MS)
  for (;;) {
    const minutes = find.all(number, next, ...values) as unknown as readonly Minute[]
    yield* rangesOf(minutes, values.length === 0)
    const last = minutes.at(-1)
    if (!last || minutes.length < CHUNK) return
    next = last.minute - 1
  }
}

/** What the sums of a minute must be for it to hold a request that passes. */
function narrowing({ from, to, status, statusClass, origin }: RequestFilter): ReturnType<typeof createConditions> {
  const kind = statusClass ?? (status === undefined ? undefined : Math.floor(status / 100))
  const isClass = kind !== undefined && kind >= 1 && kind <= 5
  return createConditions()
    .and('last_at >= ?', from)
    .and('first_at < ?', to)
    .and(`s${kind ?? ''} > ?`, isClass ? 0 : undefined)
    .and('edge > ?', origin === 'edge' ? 0 : undefined)
    .and('requests - edge > ?', origin === 'backend' ? 0 : undefined)
}

/** Pure. `all`: minutes that are not listed hold nothing, so that ranges may go across them. */
export function rangesOf(minutes: readonly Minute[], all: boolean): Range[] {
  const ranges: Range[] = []
  let rows = 0
  for (const { minute, requests } of minutes) {
    const day = Math.floor(minute / DAY_MINUTES)
    const open = ranges.at(-1)
    const joins = open?.day === day && (all || open.from === (minute + 1) * MINUTE_MS) && rows + requests <= RANGE_ROWS
    if (open && joins) {
      ranges[ranges.length - 1] = { ...open, from: minute * MINUTE_MS }
      rows += requests
    } else {
      ranges.push(...slicesOf(minute, requests, day))
      rows = requests
    }
  }
  return ranges
}

/** A busy minute in pieces, newest first. */
function slicesOf(minute: number, requests: number, day: number): Range[] {
  const count = Math.min(Math.max(1, Math.ceil(requests / RANGE_ROWS)), MINUTE_MS)
  const edge = (index: number) => minute * MINUTE_MS + Math.floor((index * MINUTE_MS) / count)
  return Array.from({ length: count }, (_, index) => ({ day, from: edge(count - index - 1), to: edge(count - index) }))
}
