import type { DatabaseSync } from 'node:sqlite'
import type { RequestFilter } from '../port.ts'
import { createConditions } from './conditions.ts'
import { type MinuteOfLog, type Range, rangesOf } from '../search-ranges.ts'
import { MINUTE_MS } from './layout.ts'

/** Number of minutes read at once. */
const MINUTES = 256

/**
 * Yields the ranges of a tunnel's log that may hold matches, newest first. The sums of each minute show whether it can hold one:
 * a search for last week's 502 responses reads some minutes instead of millions of rows.
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

/** Conditions on the sums of a minute that holds a match. */
function narrowing({ from, to, status, statusClass, origin }: RequestFilter): ReturnType<typeof createConditions> {
  const statusDigit = statusClass ?? (status === undefined ? undefined : Math.floor(status / 100))
  const isClass = statusDigit !== undefined && statusDigit >= 1 && statusDigit <= 5
  return createConditions()
    .and('last_at >= ?', from)
    .and('first_at < ?', to)
    .and(`s${statusDigit ?? ''} > ?`, isClass ? 0 : undefined)
    .and('edge > ?', origin === 'edge' ? 0 : undefined)
    .and('requests - edge > ?', origin === 'backend' ? 0 : undefined)
}
