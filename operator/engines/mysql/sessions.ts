import { setTimeout as delay } from 'node:timers/promises'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode } from '../engine.ts'
import type { MysqlFamily } from './catalog.ts'
import type { Session } from './connection.ts'
import { Errno, errnoOf } from './errors.ts'

/** Maximum number of checks, and the time between two of them: 4 s in total. */
const ROUNDS = 160
const PAUSE_MS = 25

/** Ends a session, or with `QUERY` only its current statement. Ignores a session that has already ended. */
export async function kill(session: Session, id: number, what: 'CONNECTION' | 'QUERY' = 'CONNECTION'): Promise<void> {
  try {
    await session.query(`KILL ${what} ${id}`)
  } catch (error) {
    if (errnoOf(error) !== Errno.noSuchThread) throw error
  }
}

/** Number of checks, 25 ms apart, before a login in progress is ended. An ordinary login takes some milliseconds. */
const LOGIN_ROUNDS = 10

/** Number of checks, 1 s in total, before sessions that KILL has reached count as ended. */
const KILLED_ROUNDS = 40

/** Query for the sessions, up to an id, of a tenant or on its database, and for the connections that have not logged in yet. */
const SESSIONS = `
  SELECT ID AS id, USER = 'unauthenticated user' AS unknown, COMMAND = 'Killed' AS killed FROM information_schema.PROCESSLIST
  WHERE (USER IN (?, 'unauthenticated user') OR DB = ?) AND ID <= ? AND USER <> SUBSTRING_INDEX(CURRENT_USER(), '@', 1)`

async function newestId(session: Session): Promise<number> {
  const [newest] = await session.query<{ id: number }>('SELECT MAX(ID) AS id FROM information_schema.PROCESSLIST')
  return newest?.id ?? 0
}

const areKilled = (sessions: readonly { readonly killed: 0 | 1 }[]): boolean =>
  sessions.length > 0 && sessions.every(({ killed }) => killed)

/**
 * Ends the tenant's sessions until two consecutive checks find none. The caller has blocked new logins, so the server rejects connections that
 * are opened later; these have a larger id and are ignored. A login that began its handshake earlier would still be accepted with the former
 * password, and MySQL does not show its account: all connections that have not logged in after 250 ms are ended, those of other tenants too.
 *
 * A session that KILL has reached may go on: it computes an expression that looks for no KILL, or rolls back its transaction. It runs no other
 * statement and commits nothing, so it is not waited for, but it keeps its locks.
 * @returns whether all sessions have ended; false while killed ones go on
 * @throws MooringError `engine_unavailable` when other sessions remain after 4 s
 */
export async function endSessions(session: Session, name: string): Promise<boolean> {
  const newest = await newestId(session)
  let emptyChecks = 0
  for (let round = 0; round < ROUNDS; round++) {
    const found = await session.query<{ id: number; unknown: 0 | 1; killed: 0 | 1 }>(SESSIONS, [name, name, newest])
    const due = found.filter(({ unknown }) => !unknown || round >= LOGIN_ROUNDS)
    // At once: there may be as many connections that have not logged in as the server has slots.
    await Promise.all(due.map(({ id }) => kill(session, id)))
    emptyChecks = found.length === 0 ? emptyChecks + 1 : 0
    if (emptyChecks === 2) return true
    if (round >= KILLED_ROUNDS && areKilled(found)) return false
    await delay(PAUSE_MS)
  }
  throw new MooringError(EngineCode.unavailable, `sessions of ${name} are still open after 4 s`)
}

/** Prepared XA transaction. */
interface Prepared {
  readonly formatID: number
  readonly gtrid_length: number
  readonly bqual_length: number
  /** Both parts, as `0x…` or, from MariaDB, as bytes. */
  readonly data: string | Buffer
}

/**
 * Rolls back the prepared XA transactions whose session has ended. They keep their row locks and metadata locks, survive a restart, and do
 * not show which tenant they belong to. Returns their identifiers. `which`: identifiers of the transactions to consider; default: all.
 */
export async function rollBackDetached(
  session: Session,
  family: MysqlFamily,
  which?: ReadonlySet<string>,
): Promise<readonly string[]> {
  const rolledBack: string[] = []
  for (const xid of await listPrepared(session, family)) {
    if (which && !which.has(xid)) continue
    try {
      await session.query(`XA ROLLBACK ${xid}`)
      rolledBack.push(xid)
    } catch (error) {
      // The transaction belongs to an open session, or was completed meanwhile.
      if (errnoOf(error) === undefined) throw error
    }
  }
  return rolledBack
}

/** Returns the identifiers of all prepared XA transactions, as the literals of XA ROLLBACK. */
export async function listPrepared(session: Session, family: MysqlFamily): Promise<readonly string[]> {
  // A MariaDB server has no CONVERT XID; its plain output is binary.
  const rows = await session.query<Prepared>(family === 'mariadb' ? 'XA RECOVER' : 'XA RECOVER CONVERT XID')
  return rows.map(({ formatID, gtrid_length: length, data }) => {
    const hex = typeof data === 'string' ? data.replace(/^0x/, '') : data.toString('hex')
    return `X'${hex.slice(0, 2 * length)}',X'${hex.slice(2 * length)}',${formatID}`
  })
}
