import { type Enforced, type SessionBounds, SuspensionCause } from '../engine.ts'
import { accountStatements } from './accounts.ts'
import { kindOf, type MysqlFamily, readAccounts } from './catalog.ts'
import type { Connection, Session } from './connection.ts'
import { Errno, errnoOf } from './errors.ts'
import { kill, listPrepared, rollBackDetached } from './sessions.ts'

/** Number of consecutive checks after which a statement past its bound that goes on in an ended session counts as stuck. */
const STUCK_CHECKS = 3

/**
 * Maximum time in milliseconds for which a prepared XA transaction outlives its session, and keeps its locks. With two intervals of the checks
 * it is rolled back within 60 s.
 */
const PREPARED_MS = 45_000

/** Session of a tenant in the process list. */
export interface Process {
  readonly id: number
  /** `Sleep` while the session waits for its client; `Killed` while its statement goes on after KILL. */
  readonly command: string
  /** Seconds since the session entered its state, by the session's own clock: `SET timestamp` shifts it. */
  readonly time: number
  /** Whether the session has an open transaction. */
  readonly open: 0 | 1
  /** Whether the session rolls back its transaction, which no KILL interrupts and a restart of the server would repeat. */
  readonly rollingBack: 0 | 1
  /** Whether the server rejects logins of the session's account, such as during its deletion or reset. */
  readonly isBarred: boolean
}

/** State of a session as seen from outside. */
interface Watched {
  readonly isIdle: boolean
  /** Time on the session's clock at which it entered the state, in seconds: it stays the same while the state lasts. */
  readonly enteredS: number
  /** Time on the clock of this process at which the session was first seen in the state, in ms. */
  readonly sinceMs: number
}

/** Decision about the sessions of one check. */
export interface Review {
  /** Sessions whose statement is to be cancelled. */
  readonly cancel: readonly number[]
  /** Sessions to end. */
  readonly end: readonly number[]
  readonly watched: ReadonlyMap<number, Watched>
  /** Sessions whose statement was cancelled, now or before. */
  readonly cancelled: ReadonlySet<number>
  /** Number of consecutive checks at which a statement past its bound went on although its session had been ended, by session. */
  readonly unheeded: ReadonlyMap<number, number>
}

export const NOTHING: Review = { cancel: [], end: [], watched: new Map(), cancelled: new Set(), unheeded: new Map() }

/**
 * Decides which sessions are past a bound. The age of a state is the time since this process first saw it, or its age on the session's clock,
 * whichever is longer. A tenant can shift that clock, but while a state lasts, its start on the clock does not change. The first statement
 * past its bound is cancelled. If that statement goes on, or a later one is too long, the session ends. Pure.
 */
export function reviewSessions(processes: readonly Process[], before: Review, bounds: SessionBounds, nowMs: number): Review {
  const states = processes.map((process) => ({ process, watched: watch(process, before.watched.get(process.id), nowMs) }))
  const past = states.filter(({ process, watched }) => isPast(process, watched, bounds, nowMs))
  const slow = past.filter(({ watched }) => !watched.isIdle).map(({ process }) => process.id)
  const idle = past.filter(({ watched }) => watched.isIdle).map(({ process }) => process.id)
  const ids = new Set(processes.map(({ id }) => id))
  const goesOn = slow.filter((id) => before.cancelled.has(id))
  // Only a statement past its bound is a reason to restart the server. A tenant may kill its own statement at any time, or have its instance
  // disabled by the API while the statement runs.
  const ended = past
    .map(({ process }) => process)
    .filter(({ id, command, isBarred }) => goesOn.includes(id) || (command === 'Killed' && isBarred))
  return {
    cancel: slow.filter((id) => !before.cancelled.has(id)),
    end: [...idle, ...goesOn],
    unheeded: new Map(ended.filter((one) => !one.rollingBack).map(({ id }) => [id, (before.unheeded.get(id) ?? 0) + 1])),
    watched: new Map(states.map(({ process, watched }) => [process.id, watched])),
    cancelled: new Set([...before.cancelled, ...slow].filter((id) => ids.has(id))),
  }
}

/** Returns the known state of a session while it lasts, else a new state. */
function watch({ command, time }: Process, known: Watched | undefined, nowMs: number): Watched {
  const isIdle = command === 'Sleep'
  const enteredS = nowMs / 1000 - time
  const lasts = known?.isIdle === isIdle && Math.abs(known.enteredS - enteredS) < 2
  return lasts ? known : { isIdle, enteredS, sinceMs: nowMs }
}

function isPast({ time, open }: Process, { isIdle, sinceMs }: Watched, bounds: SessionBounds, nowMs: number): boolean {
  const lastedMs = Math.max(nowMs - sinceMs, time * 1000)
  return isIdle ? open === 1 && lastedMs > bounds.idleTransactionMs : lastedMs > bounds.statementMs
}

interface PreparedReview {
  /** Prepared XA transactions and the time at which each was first seen, in ms. */
  readonly prepared: ReadonlyMap<string, number>
  /** Identifiers of the transactions past their bound. */
  readonly forgotten: readonly string[]
}

/** Decides which prepared XA transactions are past their bound. Pure. */
export function reviewPrepared(
  xids: readonly string[],
  before: PreparedReview['prepared'],
  { idleTransactionMs }: Pick<SessionBounds, 'idleTransactionMs'>,
  nowMs: number,
): PreparedReview {
  const prepared = new Map(xids.map((xid) => [xid, before.get(xid) ?? nowMs]))
  const boundMs = Math.min(idleTransactionMs, PREPARED_MS)
  return { prepared, forgotten: [...prepared].filter(([, since]) => nowMs - since > boundMs).map(([xid]) => xid) }
}

/**
 * Query for the sessions of all accounts, without the administrator's and the server's own threads. The LEFT JOIN keeps sessions that have
 * no transaction.
 */
const PROCESSES = `
  SELECT p.ID AS id, p.USER AS user, p.COMMAND AS command, p.TIME AS time, t.id IS NOT NULL AS open,
    COALESCE(t.rollingBack, 0) AS rollingBack
  FROM information_schema.PROCESSLIST p
  LEFT JOIN (
    SELECT trx_mysql_thread_id AS id, MAX(trx_state = 'ROLLING BACK') AS rollingBack FROM information_schema.INNODB_TRX GROUP BY 1
  ) t ON t.id = p.ID
  WHERE p.USER <> SUBSTRING_INDEX(CURRENT_USER(), '@', 1) AND p.COMMAND NOT IN ('Daemon', 'Connect')`

/** Query for the sessions whose temporary tables on disk exceed a bound. Only MySQL 8.0 has such files for each session. */
const SPILLING = `
  SELECT s.ID AS id FROM information_schema.INNODB_SESSION_TEMP_TABLESPACES s
  JOIN information_schema.PROCESSLIST p ON p.ID = s.ID
  WHERE p.USER <> SUBSTRING_INDEX(CURRENT_USER(), '@', 1) GROUP BY s.ID HAVING SUM(s.SIZE) > ?`

type Row = Omit<Process, 'isBarred'> & { readonly user: string }

/**
 * Creates the watchdog, which enforces the bounds of tenants' sessions. Some expressions look for no KILL: only a restart of the server ends
 * them. Their tenants are then suspended, so that the next sweep has to restore their password.
 */
export function createWatchdog(
  { watch: session }: Connection,
  family: MysqlFamily,
): (bounds: SessionBounds) => Promise<Enforced> {
  const account = accountStatements(family)
  let before = NOTHING
  /** Prepared XA transactions and the time at which each was first seen. */
  let prepared: PreparedReview['prepared'] = new Map()

  async function rollBackForgotten(bounds: SessionBounds, nowMs: number): Promise<void> {
    const review = reviewPrepared(await listPrepared(session, family), prepared, bounds, nowMs)
    prepared = review.prepared
    if (review.forgotten.length > 0) await rollBackDetached(session, family, new Set(review.forgotten))
  }

  async function listProcesses(): Promise<readonly (Process & Row)[]> {
    const rows = (await session.query<Row>(PROCESSES)).filter(({ user }) => kindOf(user) === 'tenant')
    if (rows.every(({ command }) => command !== 'Killed')) return rows.map((row) => ({ ...row, isBarred: false }))
    // The session of a deleted account may go on.
    const accounts = await readAccounts(session, family)
    const admitted = new Set(accounts.filter(({ locked, blocked }) => !locked && !blocked).map(({ name }) => name))
    return rows.map((row) => ({ ...row, isBarred: !admitted.has(row.user) }))
  }

  /** Suspends the tenants of stuck statements. Returns the names of these tenants. */
  async function suspendStuck(processes: readonly Row[]): Promise<readonly string[]> {
    const users = new Set(processes.filter(({ id }) => (before.unheeded.get(id) ?? 0) >= STUCK_CHECKS).map(({ user }) => user))
    if (users.size === 0) return []
    for (const { name } of await readAccounts(session, family))
      if (users.has(name)) await session.query(account.require(name, 'blocked'))
    return [...users]
  }

  return async function enforce(bounds) {
    const nowMs = performance.now()
    const processes = await listProcesses()
    const review = reviewSessions(processes, before, bounds, nowMs)
    const spilling = family === 'mysql' ? await listSpilling(session, bounds.sizeBytes) : []
    before = review
    for (const id of review.cancel) await kill(session, id, 'QUERY')
    for (const id of [...review.end, ...spilling]) await kill(session, id)
    await rollBackForgotten(bounds, nowMs)
    const stuck = await suspendStuck(processes)
    const counts = { cancelled: review.cancel.length, ended: review.end.length + spilling.length }
    if (stuck.length === 0) return counts
    return { ...counts, suspended: stuck.map((name) => ({ name, cause: SuspensionCause.statement })), needsRestart: true }
  }
}

async function listSpilling(session: Session, bytes: number): Promise<readonly number[]> {
  try {
    return (await session.query<{ id: number }>(SPILLING, [bytes])).map(({ id }) => id)
  } catch (error) {
    // MySQL 5.7 does not have this table.
    if (errnoOf(error) === Errno.unknownTable) return []
    throw error
  }
}
