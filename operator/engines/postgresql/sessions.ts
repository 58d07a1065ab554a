import { setTimeout as delay } from 'node:timers/promises'
import { MooringError } from '../../../crds/errors.ts'
import { EngineCode } from '../engine.ts'
import type { Session } from './connection.ts'

const ROUNDS = 200
const PAUSE_MS = 25

/** Ends, once, every session of the tenant and every session on its database. Returns how many there were. */
export async function terminateSessions(session: Session, name: string): Promise<number> {
  const ended = await session.query(
    `SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity
     WHERE (usename = $1 OR datname = $1) AND backend_type = 'client backend' AND usename <> current_user`,
    [name],
  )
  return ended.length
}

/**
 * Ends sessions until two looks in a row find none: a login that was under way when it was forbidden is not shown until it is
 * through. New ones must be forbidden already.
 * @throws MooringError `engine_failed` when they do not end
 */
export async function endSessions(session: Session, name: string): Promise<void> {
  let quiet = 0
  for (let round = 0; round < ROUNDS; round++) {
    quiet = (await terminateSessions(session, name)) === 0 ? quiet + 1 : 0
    if (quiet === 2) return
    await delay(PAUSE_MS)
  }
  throw new MooringError(EngineCode.failed, `sessions of ${name} do not end`)
}

/** Ends the sessions in this database that hold a transaction open: their locks block the admin. */
export async function endTransactions(session: Session, database: string): Promise<void> {
  await session.query(
    `SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity
     WHERE datname = $1 AND xact_start IS NOT NULL AND backend_type = 'client backend' AND usename <> current_user`,
    [database],
  )
}

interface Running {
  readonly pid: number
  /** Tells a session from a later one with the same pid. */
  readonly session: string
  readonly long: boolean
}

/** Tenants' sessions: the running statements older than $1 ms, and all that are in $2. */
const WATCHED = `
  SELECT pid, pid || '@' || extract(epoch FROM backend_start) AS session, long FROM (
    SELECT pid, backend_start,
      state IN ('active', 'fastpath function call') AND clock_timestamp() - query_start > $1 * interval '1 millisecond' AS long
    FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
    WHERE a.backend_type = 'client backend' AND NOT r.rolsuper) s
  WHERE long OR pid = ANY ($2)`

export type Watchdog = (ms: number) => Promise<number>

/**
 * Cancels statements that run too long. A session that was warned once is ended the second time, for a statement may
 * catch its cancellation and go on. Transactions that are open and idle are left alone: what they lock is in the tenant's own database.
 */
export function watchdog(session: Session): Watchdog {
  let warned = new Map<string, number>()

  return async function cancelLongStatements(ms) {
    const seen = await session.query<Running>(WATCHED, [ms, [...warned.values()]])
    const long = seen.filter((running) => running.long)
    for (const running of long) {
      await session.query(`SELECT ${warned.has(running.session) ? 'pg_terminate_backend' : 'pg_cancel_backend'}($1)`, [
        running.pid,
      ])
    }
    warned = new Map(
      seen.filter((running) => running.long || warned.has(running.session)).map((running) => [running.session, running.pid]),
    )
    return long.length
  }
}
