import { type EventRow, numberOf } from '../event-rows.ts'
import type { Page, RequestFilter, RequestRecord } from '../port.ts'
import { type MinuteOfLog, type Range, rangesOf } from '../search-ranges.ts'
import { createConditions } from './conditions.ts'
import { isUuid, lowestId, startOf, timeOfId } from './ids.ts'
import type { Ask } from './pool.ts'

const MINUTE_MS = 60_000
/** Number of minutes read in one statement. */
const CHUNK = 256

/** Searches a tunnel's request log, newest first. The sums of each minute show whether it can hold a match. */
export function createRequestReader(ask: Ask): (filter: RequestFilter, page: Page) => Promise<readonly RequestRecord[]> {
  async function* ranges(filter: RequestFilter, newestMs: number): AsyncGenerator<Range> {
    const narrow = narrowing(filter)
    let next = Math.floor(newestMs / MINUTE_MS)
    for (;;) {
      const { where, values } = narrow.and('tunnel = $', filter.tunnel).and('minute <= $', next)
      const sql = `SELECT minute, requests FROM journal.minutes WHERE ${where} ORDER BY minute DESC LIMIT ${CHUNK}`
      const rows = await ask(sql, values)
      const minutes = rows.map((row): MinuteOfLog => ({ minute: Number(row.minute), requests: Number(row.requests) }))
      yield* rangesOf(minutes, narrow.values.length === 0)
      const last = minutes.at(-1)
      if (!last || minutes.length < CHUNK) return
      next = last.minute - 1
    }
  }

  return async function requests(filter, page) {
    if (!isUuid(filter.tunnel)) return []
    const before = startOf(page.before)
    const found: RequestRecord[] = []
    for await (const { from, to } of ranges(filter, Math.min(timeOfId(before), NEWEST_MS))) {
      const { where, values } = matching(filter, before).and('id >= $', lowestId(from)).and('id < $', lowestId(to))
      const sql = `SELECT * FROM journal.requests WHERE ${where} ORDER BY id DESC LIMIT ${page.limit - found.length}`
      found.push(...(await ask(sql, values)).map(requestOf))
      if (found.length >= page.limit) break
    }
    return found
  }
}

/** Latest time that the column `minute` can hold, in milliseconds since the epoch. */
const NEWEST_MS = (2 ** 31 - 1) * MINUTE_MS

function matching(filter: RequestFilter, before: string): ReturnType<typeof createConditions> {
  const { tunnel, from, to, method, status, statusClass, sourceIp, pathPrefix, origin, reason } = filter
  return createConditions()
    .and('tunnel = $', tunnel)
    .and('id < $', before)
    .and('at >= $', from)
    .and('at < $', to)
    .and('method = $', method)
    .and('status = $', status)
    .and('status / 100 = $', statusClass)
    .and('ip = $', sourceIp)
    .and('starts_with(path, $)', pathPrefix === '' ? undefined : pathPrefix)
    .and('edge = $', origin && origin === 'edge')
    .and('reason = $', reason)
}

/** Conditions on the sums of a minute that holds a match. */
function narrowing({ from, to, status, statusClass, origin }: RequestFilter): ReturnType<typeof createConditions> {
  const statusDigit = statusClass ?? (status === undefined ? undefined : Math.floor(status / 100))
  const isClass = statusDigit !== undefined && statusDigit >= 1 && statusDigit <= 5
  return createConditions()
    .and('last_at >= $', from)
    .and('first_at < $', to)
    .and(`s${statusDigit ?? ''} > $`, isClass ? 0 : undefined)
    .and('edge > $', origin === 'edge' ? 0 : undefined)
    .and('requests - edge > $', origin === 'backend' ? 0 : undefined)
}

/** Converts a row of `journal.requests`. */
export function requestOf(row: EventRow): RequestRecord {
  return {
    id: row.id as string,
    tunnel: row.tunnel as string,
    at: numberOf(row.at),
    method: row.method as string,
    path: row.path as string,
    status: row.status as number,
    durationMs: row.ms as number,
    bytesIn: numberOf(row.bytes_in),
    bytesOut: numberOf(row.bytes_out),
    sourceIp: row.ip as string,
    origin: row.edge === true ? 'edge' : 'backend',
    reason: row.reason as string | null,
    protocol: row.h2 === true ? 'h2' : 'http/1.1',
  }
}
