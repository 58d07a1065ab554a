import { setTimeout as delay } from 'node:timers/promises'
import { MooringError } from '../../../../shared/errors.ts'
import { EngineCode } from '../../engine.ts'
import type { Session } from '../session.ts'

/** SQL for the identifier of a session in `pg_stat_activity`: pid and start time, because pids are reused. */
export const SESSION_ID = `pid || '@' || extract(epoch FROM backend_start)`

/** Pause between two rounds that end sessions. */
const PAUSE_MS = 25

/** Bounds of the wait for sessions to end, in ms. */
export const END_WITHIN_MS = { required: 4_000, attempted: 1_000 } as const

/** Session that was told to end and goes on. */
export interface Survivor {
  /** Role and database of the session. */
  readonly role: string
  readonly database: string
}

/**
 * Sessions of tenants that this process told to end. A loop without checks for interrupts, as in some operators on arrays, heeds neither
 * pg_cancel_backend nor pg_terminate_backend. After a restart of this process the next attempt to end the session records it again.
 */
export interface EndedSessions {
  /** Records sessions, given by {@link SESSION_ID}. */
  record(sessions: readonly string[]): void
  /** Returns the sessions that were told to end more than `afterMs` ago and still exist. */
  findSurvivors(session: Session, afterMs: number): Promise<readonly Survivor[]>
}

export function createEndedSessions(): EndedSessions {
  /** Time at which each session was first told to end, in ms of `performance.now()`. */
  const since = new Map<string, number>()

  return {
    record(sessions) {
      const now = performance.now()
      for (const id of sessions) if (!since.has(id)) since.set(id, now)
    },
    async findSurvivors(session, afterMs) {
      if (since.size === 0) return []
      const ids = [...since.keys()]
      const rows = await session.query<Survivor & { id: string }>(
        `SELECT id, role, database FROM (
           SELECT ${SESSION_ID} AS id, usename AS role, datname AS database FROM pg_stat_activity WHERE backend_type = 'client backend') s
         WHERE id = ANY ($1)`,
        [ids],
      )
      const living = new Map(rows.map((row) => [row.id, row]))
      for (const id of ids) if (!living.has(id)) since.delete(id)
      const now = performance.now()
      return [...living.values()].filter(({ id }) => now - (since.get(id) ?? now) > afterMs)
    },
  }
}

/**
 * Ends the tenant's sessions until two consecutive checks find none: `pg_stat_activity` lists a login that is in progress only after it
 * has completed. The caller has disabled new logins.
 * @throws MooringError `engine_failed` when sessions remain after 4 s
 */
export async function endSessions(session: Session, name: string, ended?: EndedSessions): Promise<void> {
  if (!(await tryEndSessions({ tenants: session, ended }, name, END_WITHIN_MS.required)))
    throw new MooringError(EngineCode.failed, `sessions of ${name} do not end`)
}

/** Part of the administrator's connection that ends sessions. `ended` absent: the sessions are not recorded. */
interface Ending {
  readonly tenants: Session
  readonly ended?: EndedSessions | undefined
}

/** Ends the tenant's sessions as {@link endSessions} does. Returns false when sessions remain after `withinMs`. */
export async function tryEndSessions({ tenants, ended }: Ending, name: string, withinMs: number): Promise<boolean> {
  let emptyChecks = 0
  const end = performance.now() + withinMs
  while (performance.now() < end) {
    const told = await terminateSessions(tenants, name)
    ended?.record(told)
    emptyChecks = told.length === 0 ? emptyChecks + 1 : 0
    if (emptyChecks === 2) return true
    await delay(PAUSE_MS)
  }
  return false
}

/** Terminates every session of the tenant and every session on its database. Returns the identifiers of these sessions. */
async function terminateSessions(session: Session, name: string): Promise<readonly string[]> {
  const told = await session.query<{ id: string }>(
    `SELECT pg_terminate_backend(pid), ${SESSION_ID} AS id FROM pg_stat_activity
     WHERE (usename = $1 OR datname = $1) AND backend_type = 'client backend' AND usename <> current_user`,
    [name],
  )
  return told.map(({ id }) => id)
}
