import type { DatabaseSync } from 'node:sqlite'
import { DELIVERY_DAYS } from '../webhooks.ts'
import { AUDIT_DAYS, CLIENT_MINUTE_DAYS, EVENT_DAYS, REQUEST_DAYS } from '../port.ts'
import { HOUR_MS } from '../../shared/database-usage.ts'
import { SAMPLE_DAYS } from '../databases.ts'
import { MINUTE_MS } from '../search.ts'
import { DAY_MS, dayTable } from './layout.ts'
import { idOfBytes, lowestId } from './ids.ts'

/** Maximum number of rows that one step removes: a step delays writes by some milliseconds. */
const STEP_ROWS = 2_000
const STEP_TUNNELS = 100

type Step = () => void

/**
 * Yields the steps that remove all records past their retention at `now`, in milliseconds since the epoch. Run each step in a
 * transaction of its own.
 */
export function* retentionSteps(db: DatabaseSync, now: number): Generator<Step, void, undefined> {
  yield* oldDays(db, Math.floor(now / DAY_MS) - REQUEST_DAYS)
  const events = lowestId(now - EVENT_DAYS * DAY_MS)
  // An open session is known by its connect record alone.
  yield* inSteps(db, 'connections', `id < ? AND session NOT IN (SELECT session FROM open_sessions)`, [events])
  yield* inSteps(db, 'audit', 'id < ?', [lowestId(now - AUDIT_DAYS * DAY_MS)])
  yield* ofWebhooks(db, now)
  yield* ofDatabases(db, now)
  yield* ofTunnels(db, now)
}

function* oldDays(db: DatabaseSync, first: number): Generator<Step, void, undefined> {
  const days = db.prepare('SELECT day FROM days WHERE day < ? ORDER BY day').all(first)
  for (const { day } of days) {
    const table = dayTable(Number(day))
    // The table is emptied first: dropping a table of millions of rows takes as long as reading it.
    yield* inSteps(db, table, 'true', [])
    yield () => db.exec(`DROP TABLE ${table}; DELETE FROM days WHERE day = ${Number(day)}`)
  }
}

function* inSteps(
  db: DatabaseSync,
  table: string,
  condition: string,
  values: readonly Uint8Array[],
): Generator<Step, void, undefined> {
  const key = table === 'audit' ? 'namespace' : 'tunnel'
  const remove = db.prepare(
    `DELETE FROM ${table} WHERE (${key}, id) IN (SELECT ${key}, id FROM ${table} WHERE ${condition} LIMIT ${STEP_ROWS})`,
  )
  let removed = STEP_ROWS
  while (removed === STEP_ROWS) {
    yield () => {
      removed = Number(remove.run(...values).changes)
    }
  }
}

function* ofWebhooks(db: DatabaseSync, now: number): Generator<Step, void, undefined> {
  const idBefore = (days: number) => idOfBytes(lowestId(now - days * DAY_MS))
  const events = db.prepare('DELETE FROM tunnel_events WHERE id < ?')
  yield () => void events.run(idBefore(EVENT_DAYS))
  const remove = db.prepare(
    `DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE id < ? AND next_at IS NULL LIMIT ${STEP_ROWS})`,
  )
  let removed = STEP_ROWS
  while (removed === STEP_ROWS) {
    yield () => {
      removed = Number(remove.run(idBefore(DELIVERY_DAYS)).changes)
    }
  }
  const streaks = db.prepare('DELETE FROM failure_streaks WHERE since < ?')
  yield () => void streaks.run(now - EVENT_DAYS * DAY_MS)
}

function* ofDatabases(db: DatabaseSync, now: number): Generator<Step, void, undefined> {
  const removals = [
    ['usage', 'hour < ?', (now - AUDIT_DAYS * DAY_MS) / HOUR_MS],
    ['samples', 'at < ?', now - SAMPLE_DAYS * DAY_MS],
  ] as const
  for (const [table, condition, oldest] of removals) {
    const key = table === 'usage' ? 'database, since, item' : 'database, at'
    const remove = db.prepare(
      `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${condition} LIMIT ${STEP_ROWS})`,
    )
    let removed = STEP_ROWS
    while (removed === STEP_ROWS) {
      yield () => {
        removed = Number(remove.run(Math.floor(oldest)).changes)
      }
    }
  }
}

function* ofTunnels(db: DatabaseSync, now: number): Generator<Step, void, undefined> {
  const minuteOf = (days: number) => Math.floor((now - days * DAY_MS) / MINUTE_MS)
  const minutes = db.prepare('DELETE FROM minutes WHERE tunnel = ? AND minute < ?')
  const hours = db.prepare('DELETE FROM client_hours WHERE tunnel = ? AND minute < ?')
  const clients = db.prepare('DELETE FROM client_minutes WHERE tunnel = ? AND minute < ?')
  const numbers = db.prepare('SELECT number FROM tunnels ORDER BY number').all()
  for (let start = 0; start < numbers.length; start += STEP_TUNNELS) {
    yield () => {
      for (const { number } of numbers.slice(start, start + STEP_TUNNELS)) {
        minutes.run(Number(number), minuteOf(EVENT_DAYS))
        hours.run(Number(number), minuteOf(EVENT_DAYS))
        clients.run(Number(number), minuteOf(CLIENT_MINUTE_DAYS))
      }
    }
  }
  yield () =>
    db.exec(`DELETE FROM tunnels WHERE NOT EXISTS (SELECT 1 FROM minutes WHERE tunnel = number)
    AND NOT EXISTS (SELECT 1 FROM connections WHERE tunnel = number)`)
}
