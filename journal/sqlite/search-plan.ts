import type { DatabaseSync } from 'node:sqlite'
import type { RequestFilter } from '../port.ts'
import { createConditions } from './conditions.ts'
import { type MinuteOfLog, type Range, rangesOf } from '../search-ranges.ts'
import { MINUTE_MS } from './layout.ts'

/** Minutes that are looked at together. */
const MINUTES = 256

/**
 * Where in a tunnel's log a search has to look, newest first: the sums tell of each minute whether it can hold anything that passes. A
 * search for last week's 502 reads some minutes instead of millions of rows.
 */
export function* searchPlan(db: DatabaseSync, number: number, filter: RequestFilter, newestMs: number): Generator<Range> {
  const narrow = narrowing(filter)
  const { where, values } = narrow
  const find = db.prepare(
    `SELECT minute, requests FROM minutes WHERE tunnel = ? AND minute <= ? AND ${where} ORDER BY minute DESC LIMIT ${MINUTES}`,
  )
  let next = Math.floor(newestMs / MINUTE_MS)
  for (;;) {
    const minutes = find.all(number, next, ...values) as unknown as readonly MinuteOfLog[]
    yield* rangesOf(minutes, values.length === 0)
    const last = minutes.at(-1)
    if (!last || minutes.length < MINUTES) return
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
