import type { Page, RequestFilter, RequestRecord } from '../port.ts'
import { type MinuteOfLog, type Range, rangesOf } from '../search-ranges.ts'
import { createConditions } from './conditions.ts'
import { isUuid, lowestId, startOf, timeOfId } from './ids.ts'
import type { Ask } from './pool.ts'
import { requestOf } from './rows.ts'

const MINUTE_MS = 60_000
/** Minutes that are looked at together. */
const CHUNK = 256

/** Searches a tunnel's request log, newest first: the sums tell of each minute whether it can hold anything that passes. */
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
      const { where, values } = passing(filter, before).and('id >= $', lowestId(from)).and('id < $', lowestId(to))
      const sql = `SELECT * FROM journal.requests WHERE ${where} ORDER BY id DESC LIMIT ${page.limit - found.length}`
      found.push(...(await ask(sql, values)).map(requestOf))
      if (found.length >= page.limit) break
    }
    return found
  }
}

/** What the column of minutes can hold. */
const NEWEST_MS = (2 ** 31 - 1) * MINUTE_MS

function passing(filter: RequestFilter, before: string): ReturnType<typeof createConditions> {
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

/** What the sums of a minute must be for it to hold a request that passes. */
function narrowing({ from, to, status, statusClass, origin }: RequestFilter): ReturnType<typeof createConditions> {
  const kind = statusClass ?? (status === undefined ? undefined : Math.floor(status / 100))
  const isClass = kind !== undefined && kind >= 1 && kind <= 5
  return createConditions()
    .and('last_at >= $', from)
    .and('first_at < $', to)
    .and(`s${kind ?? ''} > $`, isClass ? 0 : undefined)
    .and('edge > $', origin === 'edge' ? 0 : undefined)
    .and('requests - edge > $', origin === 'backend' ? 0 : undefined)
}
