import { setTimeout as delay } from 'node:timers/promises'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode } from '../engine.ts'
import type { Session } from './connection.ts'

const ROUNDS = 160
const PAUSE_MS = 25

/** Asks every session of the tenant, and every session on its database, to end. Returns how many there were. */
async function terminateSessions(session: Session, name: string): Promise<number> {
  const ended = await session.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE (usename = $1 OR datname = $1) AND backend_type = 'client backend' AND usename <> current_user`,
    [name],
  )
  return ended.length
}

/**
 * Ends sessions until two looks in a row find none: a login that was under way when it was forbidden is shown only once it is
 * through. New logins must be forbidden already.
 * @throws MooringError `engine_failed` when some are left after 4 s
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
