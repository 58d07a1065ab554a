import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { type Chunk, chunksOf } from './chunks.ts'
import { createClientCounts } from './client-counts.ts'
import { dayTable, makeDay, CHUNK_MS } from './layout.ts'
import { REQUEST_DAYS, type Page, type RequestFilter, type RequestRecord } from '../port.ts'
import { createSums, sumsOf } from './stats.ts'
import { idOfBytes, lowestId, startOf, timeOfId, type TunnelNumbers } from './ids.ts'
import { type Conditions, matchesFilter, minuteConditions, type MinuteOfLog, type Range, rangesOf, MINUTE_MS } from '../search.ts'
import { rowsOfTunnel } from '../request-text.ts'
import { conditions } from './events.ts'

/** Number of minutes read at once. */
const MINUTES = 256

export interface RequestKeeper {
  /**
   * Keeps the batches that are new, each in the format of request-text.ts, and sums them up. Call it within a transaction.
   * Returns the number of requests that are invalid or of a time that is not kept.
   */
  keep(batches: readonly Uint8Array[], now: number): number
  /** Discards the state in memory, after a rollback. */
  forget(): void
}

/** Creates the part of the writing thread that keeps requests. */
export function createRequestKeeper(db: DatabaseSync, tunnels: TunnelNumbers): RequestKeeper {
  const sums = createSums(db)
  const clients = createClientCounts(db)
  const isDay = db.prepare('SELECT 1 FROM days WHERE day = ?')
  const statements = new Map<number, StatementSync>()

  function insertInto(day: number): StatementSync {
    const known = statements.get(day)
    if (known) return known
    if (!isDay.get(day)) db.exec(makeDay(day))
    // The id is passed as text, the lines as bytes.
    const made = db.prepare(
      `INSERT INTO ${dayTable(day)} (tunnel, id, records) VALUES (?, unhex(?, '-'), CAST(? AS TEXT)) ON CONFLICT DO NOTHING`,
    )
    // Records of a few days can arrive together; older statements belong to tables that are gone.
    if (statements.size > REQUEST_DAYS + 2) statements.clear()
    statements.set(day, made)
    return made
  }

  /** Inserts a chunk. Returns whether it is new. */
  const insert = ({ day, tunnel, id, text }: Chunk): boolean => insertInto(day).run(tunnel, id, text).changes === 1

  function keep(batches: readonly Uint8Array[], now: number): number {
    let refused = 0
    const fresh: Chunk[] = []
    for (const batch of batches) {
      const read = chunksOf(batch, now, tunnels)
      refused += read.refused
      fresh.push(...read.chunks.filter(insert))
    }
    const requests = fresh.flatMap((chunk) => chunk.requests)
    sums.add(sumsOf(requests))
    clients.add(requests)
    return refused
  }

  function forget(): void {
    statements.clear()
    clients.forget()
  }

  return { keep, forget }
}

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

/**
 * Yields the ranges of a tunnel's log that may hold matches, newest first. The sums of each minute show whether it can hold one:
 * a search for last week's 502 responses reads some minutes instead of millions of rows.
 */
function* searchPlan(db: DatabaseSync, number: number, filter: RequestFilter, newestMs: number): Generator<Range> {
  const { where, values } = minuteConditions(conditions(), filter)
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
function mayMatch({ method, status, sourceIp, pathPrefix, reason }: RequestFilter): Conditions<SQLInputValue> {
  const has = 'instr(records, $)'
  return conditions()
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
