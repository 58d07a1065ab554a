import { setTimeout as delay } from 'node:timers/promises'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode } from '../engine.ts'
import type { Session } from './connection.ts'

const ROUNDS = 160
const PAUSE_MS = 25

/** Terminates every session of the tenant and every session on its database. Returns the number of these sessions. */
async function terminateSessions(session: Session, name: string): Promise<number> {
  const ended = await session.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE (usename = $1 OR datname = $1) AND backend_type = 'client backend' AND usename <> current_user`,
    [name],
  )
  return ended.length
}

/**
 * Ends the tenant's sessions until two consecutive checks find none: `pg_stat_activity` lists a login that is in progress only after it
 * has completed. The caller has disabled new logins.
 * @throws MooringError `engine_failed` when sessions remain after 4 s
 */
export async function endSessions(session: Session, name: string): Promise<void> {
  let emptyChecks = 0
  for (let round = 0; round < ROUNDS; round++) {
    emptyChecks = (await terminateSessions(session, name)) === 0 ? emptyChecks + 1 : 0
    if (emptyChecks === 2) return
    await delay(PAUSE_MS)
  }
  throw new MooringError(EngineCode.failed, `sessions of ${name} do not end`)
}
