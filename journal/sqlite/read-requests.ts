import type { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { matchesFilter } from '../matches-filter.ts'
import type { Page, RequestFilter, RequestRecord } from '../port.ts'
import { rowsOfTunnel } from '../request-text.ts'
import type { Range } from '../search-ranges.ts'
import { type Conditions, createConditions } from './conditions.ts'
import { dayTable } from './layout.ts'
import { startOf } from './read-events.ts'
import { CHUNK_MS } from './chunk-bounds.ts'
import { idOfBytes, lowestId, timeOfId } from './record-id.ts'
import { searchPlan } from './search-plan.ts'

/** Searches a tunnel's request log, newest first, range by range. Other questions get a turn between two ranges. */
export function createRequestReader(db: DatabaseSync): (filter: RequestFilter, page: Page) => Promise<RequestRecord[]> {
  const findNumber = db.prepare('SELECT number FROM tunnels WHERE uid = ?')
  const isDay = db.prepare('SELECT 1 FROM days WHERE day = ?')

  return async function requests(filter, { limit, before }) {
    const number = findNumber.get(filter.tunnel)?.number
    if (number === undefined) return []
    const end = startOf(before)
    const found: RequestRecord[] = []
    for (const range of searchPlan(db, Number(number), filter, timeOfId(end))) {
      inTransaction(db, () => {
        if (!isDay.get(range.day)) return
        for (const records of periods(db, Number(number), { ...range, filter, end })) {
          found.push(...records.filter((record) => matchesFilter(record, filter)))
          if (found.length >= limit) break
        }
      })
      if (found.length >= limit) break
      await setImmediate()
    }
    return found.slice(0, limit)
  }
}

/** Runs `read` in one transaction, during which no day's table disappears. */
function inTransaction<T>(db: DatabaseSync, read: () => T): T {
  db.exec('BEGIN')
  try {
    return read()
  } finally {
    db.exec('COMMIT')
  }
}

interface SearchRange extends Range {
  readonly filter: RequestFilter
  /** Exclusive upper bound of ids. */
  readonly end: Uint8Array
}

/** SQL conditions on the text of a row that may hold a match: most rows need not be parsed then. */
function mayMatch({ method, status, sourceIp, pathPrefix, reason }: RequestFilter): Conditions {
  const has = 'instr(records, ?)'
  return createConditions()
    .and(has, method && `\n${method}\n`)
    .and(has, status && `\n${status}\n`)
    .and(has, sourceIp && `\n${sourceIp}\n`)
    .and(has, pathPrefix && `\n${pathPrefix}`)
    .and(has, reason && `\n${reason}\n`)
}

/**
 * Yields possible matches in part of a tunnel's log, newest first, one {@link CHUNK_MS} at a time. Within a period the file has
 * no order.
 */
function* periods(
  db: DatabaseSync,
  number: number,
  { day, from, to, filter, end }: SearchRange,
): Generator<readonly RequestRecord[]> {
  const high = Buffer.compare(lowestId(to), end) < 0 ? lowestId(to) : end
  const [lowText, highText] = [idOfBytes(lowestId(from)), idOfBytes(high)]
  // A row is stored under the lowest of its ids.
  const low = lowestId(Math.floor(from / CHUNK_MS) * CHUNK_MS)
  const { where, values } = mayMatch(filter)
  const sql = `SELECT id, records FROM ${dayTable(day)} WHERE tunnel = ? AND id >= ? AND id < ? AND ${where} ORDER BY id DESC`
  let records: RequestRecord[] = []
  let period: number | undefined
  const sorted = () =>
    records.filter(({ id }) => id >= lowText && id < highText).sort((one, other) => (one.id < other.id ? 1 : -1))
  for (const row of db.prepare(sql).iterate(number, low, high, ...values)) {
    const periodOfRow = Math.floor(timeOfId(row.id as Uint8Array) / CHUNK_MS)
    if (period !== undefined && period !== periodOfRow) {
      yield sorted()
      records = []
    }
    period = periodOfRow
    for (const record of rowsOfTunnel(row.records as string, filter.tunnel)) records.push(record)
  }
  yield sorted()
}
