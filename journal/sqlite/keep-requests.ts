import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { createClientCounts } from './client-counts.ts'
import { DAY_MS, dayTable, makeDay } from './layout.ts'
import { bytesOfId, timeOfId } from './record-id.ts'
import { type RequestRow, requestRows } from '../request-text.ts'
import { REQUEST_DAYS } from './retention.ts'
import { createSums, type KeptRequest, sumsOf } from './sums.ts'
import type { TunnelNumbers } from './tunnel-numbers.ts'

const COLUMNS = '(tunnel, id, at, method, path, status, ms, bytes_in, bytes_out, ip, edge, reason, h2)'
const VALUES = '(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'
/** Rows that one statement inserts: calls cost more than rows. */
const AT_ONCE = 32

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
  const statements = new Map<string, StatementSync>()

  function insertInto(day: number, rows: number): StatementSync {
    const key = `${day} ${rows}`
    const known = statements.get(key)
    if (known) return known
    if (!isDay.get(day)) db.exec(makeDay(day))
    const values = Array.from({ length: rows }, () => VALUES).join(', ')
    const made = db.prepare(`INSERT OR IGNORE INTO ${dayTable(day)} ${COLUMNS} VALUES ${values}`)
    // A few days of records can come at once; what is older is of tables that are gone.
    if (statements.size > 2 * REQUEST_DAYS + 4) statements.clear()
    statements.set(key, made)
    return made
  }

  /** Rows of one day; returns those that were not there. */
  function insertOneByOne(day: number, rows: readonly Row[]): readonly Row[] {
    const insert = insertInto(day, 1)
    return rows.filter(({ values }) => insert.run(...values).changes === 1)
  }

  function insertTogether(day: number, rows: readonly Row[]): readonly Row[] {
    if (rows.length < AT_ONCE) return insertOneByOne(day, rows)
    const insert = insertInto(day, AT_ONCE)
    db.exec('SAVEPOINT together')
    const { changes } = insert.run(...rows.flatMap(({ values }) => values))
    if (changes === AT_ONCE) {
      db.exec('RELEASE together')
      return rows
    }
    // Some were there already (a batch that is shipped again): only one by one it shows which.
    db.exec('ROLLBACK TO together; RELEASE together')
    return insertOneByOne(day, rows)
  }

  function keep(text: string, now: number): number {
    if (text === '') return 0
    const given = requestRows(text)
    const rows = given.flatMap((row) => rowOf(row, now, tunnels) ?? [])
    const fresh: Row[] = []
    for (const [day, ofDay = []] of Object.entries(Object.groupBy(rows, (row) => String(row.day)))) {
      for (let start = 0; start < ofDay.length; start += AT_ONCE) {
        fresh.push(...insertTogether(Number(day), ofDay.slice(start, start + AT_ONCE)))
      }
    }
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
function rowOf(row: RequestRow, now: number, tunnels: TunnelNumbers): Row | undefined {
  const id = bytesOfId(row.id)
  const numbers = [row.at, row.status, row.durationMs, row.bytesIn, row.bytesOut]
  if (!id || !numbers.every(Number.isFinite)) return undefined
  const time = timeOfId(id)
  const day = Math.floor(time / DAY_MS)
  const today = Math.floor(now / DAY_MS)
  if (day < today - REQUEST_DAYS || day > today + 1) return undefined
  const tunnel = tunnels.of(row.tunnel)
  const { at, method, path, status, durationMs, bytesIn, bytesOut, sourceIp: ip, reason } = row
  const edge = row.origin === 'edge'
  const h2 = Number(row.protocol === 'h2')
  const values = [tunnel, id, at, method, path, status, durationMs, bytesIn, bytesOut, ip, Number(edge), reason, h2]
  return { tunnel, time, day, at, status, durationMs, bytesIn, bytesOut, edge, ip, values }
}
