import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { createClientCounts } from './client-counts.ts'
import { DAY_MS, dayTable, makeDay } from './layout.ts'
import { timeOfIdText } from './record-id.ts'
import type { RequestRecord } from '../port.ts'
import { requestRows } from '../request-text.ts'
import { REQUEST_DAYS } from '../retention-days.ts'
import { createSums, type KeptRequest, sumsOf } from './sums.ts'
import type { TunnelNumbers } from './tunnel-numbers.ts'

const COLUMNS = '(tunnel, id, at, method, path, status, ms, bytes_in, bytes_out, ip, edge, reason, h2)'
/** The id is given as text. */
const VALUES = "(?, unhex(?, '-'), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

interface Row extends KeptRequest {
  readonly day: number
  readonly ip: string
  readonly values: readonly SQLInputValue[]
}

export interface RequestKeeper {
  /** Keeps those that are not there yet and sums them up. Within a transaction. Returns how many were no records. */
  keep(text: string, now: number): number
  /** After a rollback: what was prepared for it counts no more. */
  forget(): void
}

/** The half of the writing thread that keeps requests. */
export function createRequestKeeper(db: DatabaseSync, tunnels: TunnelNumbers): RequestKeeper {
  const sums = createSums(db)
  const clients = createClientCounts(db)
  const isDay = db.prepare('SELECT 1 FROM days WHERE day = ?')
  const statements = new Map<number, StatementSync>()

  function insertInto(day: number): StatementSync {
    const known = statements.get(day)
    if (known) return known
    if (!isDay.get(day)) db.exec(makeDay(day))
    const made = db.prepare(`INSERT OR IGNORE INTO ${dayTable(day)} ${COLUMNS} VALUES ${VALUES}`)
    // A few days of records can come at once; what is older is of tables that are gone.
    if (statements.size > REQUEST_DAYS + 2) statements.clear()
    statements.set(day, made)
    return made
  }

  /** Rows of one day; returns those that were not there. */
  function insert(day: number, rows: readonly Row[]): readonly Row[] {
    const statement = insertInto(day)
    return rows.filter(({ values }) => statement.run(...values).changes === 1)
  }

  function keep(text: string, now: number): number {
    if (text === '') return 0
    const given = requestRows(text)
    const rows: Row[] = []
    for (const request of given) {
      const row = rowOf(request, now, tunnels)
      if (row) rows.push(row)
    }
    const fresh: Row[] = []
    for (const [day, ofDay] of Map.groupBy(rows, (row) => row.day)) fresh.push(...insert(day, ofDay))
    sums.add(sumsOf(fresh))
    clients.add(fresh)
    return given.length - rows.length
  }

  function forget(): void {
    statements.clear()
    clients.forget()
  }

  return { keep, forget }
}

/** Undefined for what is no record, or is of a day that is past its retention or still to come. */
function rowOf(row: RequestRecord, now: number, tunnels: TunnelNumbers): Row | undefined {
  const time = timeOfIdText(row.id)
  if (time === undefined || !Number.isFinite(row.at + row.status + row.durationMs + row.bytesIn + row.bytesOut)) return undefined
  const day = Math.floor(time / DAY_MS)
  const today = Math.floor(now / DAY_MS)
  if (day < today - REQUEST_DAYS || day > today + 1) return undefined
  const tunnel = tunnels.of(row.tunnel)
  const { id, at, method, path, status, durationMs, bytesIn, bytesOut, sourceIp: ip, reason } = row
  const edge = row.origin === 'edge'
  const h2 = Number(row.protocol === 'h2')
  const values = [tunnel, id, at, method, path, status, durationMs, bytesIn, bytesOut, ip, Number(edge), reason, h2]
  return { tunnel, time, day, at, status, durationMs, bytesIn, bytesOut, edge, ip, values }
}
