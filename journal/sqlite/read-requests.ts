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

/** Searches a tunnel's request log, newest first, range by range; other questions are answered in between. */
export function createRequestReader(db: DatabaseSync): (filter: RequestFilter, page: Page) => Promise<RequestRecord[]> {
  const numberOf = db.prepare('SELECT number FROM tunnels WHERE uid = ?')
  const isDay = db.prepare('SELECT 1 FROM days WHERE day = ?')

  return async function requests(filter, { limit, before }) {
    const number = numberOf.get(filter.tunnel)?.number
    if (number === undefined) return []
    const end = startOf(before)
    const found: RequestRecord[] = []
    for (const range of searchPlan(db, Number(number), filter, timeOfId(end))) {
      inOneView(db, () => {
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

/** A day's table that is there at the beginning is there at the end. */
function inOneView<T>(db: DatabaseSync, read: () => T): T {
  db.exec('BEGIN')
  try {
    return read()
  } finally {
    db.exec('COMMIT')
  }
}

interface Stretch extends Range {
  readonly filter: RequestFilter
  /** Ids must sort before this. */
  readonly end: Uint8Array
}

/** What the text of a row must have for it to hold a request that matchesFilter: most rows need not be read then. */
function mayPass({ method, status, sourceIp, pathPrefix, reason }: RequestFilter): Conditions {
  const has = 'instr(records, ?)'
  return createConditions()
    .and(has, method && `\n${method}\n`)
    .and(has, status && `\n${status}\n`)
    .and(has, sourceIp && `\n${sourceIp}\n`)
    .and(has, pathPrefix && `\n${pathPrefix}`)
    .and(has, reason && `\n${reason}\n`)
}

/** What may pass of a stretch of a tunnel's log, newest first, in parts: those of a {@link CHUNK_MS} are in no order in the file. */
function* periods(
  db: DatabaseSync,
  number: number,
  { day, from, to, filter, end }: Stretch,
): Generator<readonly RequestRecord[]> {
  const high = Buffer.compare(lowestId(to), end) < 0 ? lowestId(to) : end
  const [lowText, highText] = [idOfBytes(lowestId(from)), idOfBytes(high)]
  // A row has the lowest of its ids.
  const low = lowestId(Math.floor(from / CHUNK_MS) * CHUNK_MS)
  const { where, values } = mayPass(filter)
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
