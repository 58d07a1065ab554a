import type { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import type { Page, RequestFilter, RequestRecord } from '../port.ts'
import { createConditions } from './conditions.ts'
import { dayTable } from './layout.ts'
import { startOf } from './read-events.ts'
import { idOfBytes, lowestId, timeOfId } from './record-id.ts'
import type { Range } from '../search-ranges.ts'
import { searchPlan } from './search-plan.ts'

type Row = Readonly<Record<string, unknown>>

/** Searches a tunnel's request log, newest first, range by range; other questions are answered in between. */
export function createRequestReader(db: DatabaseSync): (filter: RequestFilter, page: Page) => Promise<RequestRecord[]> {
  const numberOf = db.prepare('SELECT number FROM tunnels WHERE uid = ?')
  const isDay = db.prepare('SELECT 1 FROM days WHERE day = ?')

  function search(
    number: number,
    filter: RequestFilter,
    { limit, before }: Page,
  ): (range: Range, found: number) => readonly Row[] {
    const { from, to, method, status, statusClass, sourceIp, pathPrefix, origin, reason } = filter
    const { where, values } = createConditions()
      .and('id < ?', startOf(before))
      .and('at >= ?', from)
      .and('at < ?', to)
      .and('method = ?', method)
      .and('status = ?', status)
      .and('status / 100 = ?', statusClass)
      .and('ip = ?', sourceIp)
      .and('instr(path, ?) = 1', pathPrefix === '' ? undefined : pathPrefix)
      .and('edge = ?', origin && Number(origin === 'edge'))
      .and('reason = ?', reason)

    function look({ day, from: low, to: high }: Range, found: number): readonly Row[] {
      const sql = `SELECT * FROM ${dayTable(day)} WHERE tunnel = ? AND id >= ? AND id < ? AND ${where} ORDER BY id DESC LIMIT ?`
      return db.prepare(sql).all(number, lowestId(low), lowestId(high), ...values, limit - found)
    }
    return (range, found) => inOneView(db, () => (isDay.get(range.day) ? look(range, found) : []))
  }

  return async function requests(filter, page) {
    const number = numberOf.get(filter.tunnel)?.number
    if (number === undefined) return []
    const look = search(Number(number), filter, page)
    const found: RequestRecord[] = []
    for (const range of searchPlan(db, Number(number), filter, timeOfId(startOf(page.before)))) {
      for (const row of look(range, found.length)) found.push(recordOf(filter.tunnel, row))
      if (found.length === page.limit) break
      await setImmediate()
    }
    return found
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

function recordOf(tunnel: string, row: Row): RequestRecord {
  return {
    id: idOfBytes(row.id as Uint8Array),
    tunnel,
    at: row.at as number,
    method: row.method as string,
    path: row.path as string,
    status: row.status as number,
    durationMs: row.ms as number,
    bytesIn: row.bytes_in as number,
    bytesOut: row.bytes_out as number,
    sourceIp: row.ip as string,
    origin: row.edge === 1 ? 'edge' : 'backend',
    reason: row.reason as string | null,
    protocol: row.h2 === 1 ? 'h2' : 'http/1.1',
  }
}
