import { createHash } from 'node:crypto'
import { Binary } from 'mongodb'
import { type EngineAdmin, type Suspension, SuspensionCause } from '../engine.ts'
import type { Connection } from './connection.ts'
import { killOperations, type Operation } from './sessions.ts'
import { type Survey, surveyOperations } from './survey.ts'
import { changeUser, tenantOf, usersOf } from './users.ts'

/**
 * Factors by which a tenant may exceed its connection limit: normally, and while few connections are free. The server cannot reject the connections of a single
 * tenant, and drivers open up to 100 by default.
 */
const TOLERANCE = { normal: 8, scarce: 2 }
/** Connections of a tenant without a limit in its login. */
const DEFAULT_CONNECTIONS = 12
/** Share of free connections below which they are scarce. */
const MIN_FREE = 0.1
/** Share of connections without a login above which a restart helps; those of a suspended tenant are among them. */
const MAX_NAMELESS = 0.5
/** Minimum time between two restarts for connections, in ms. */
const RESTART_INTERVAL_MS = 60_000
/** Number of consecutive checks after which an operation that was killed for its bound counts as stuck. */
const STUCK_CHECKS = 3

export interface Deps {
  readonly connection: Connection
  /** Name of the administrator. */
  readonly admin: string
  /** Names of the tenants whose reset waits for an operation that was killed and goes on. */
  readonly waiting: ReadonlySet<string>
  /** Default: {@link RESTART_INTERVAL_MS}. */
  readonly restartIntervalMs?: number
}

interface ServerStatus {
  readonly connections: { readonly current: number; readonly available: number }
  readonly uptimeMillis: bigint | number
}

/** What the watchdog did about too many connections. */
interface Guarded {
  readonly suspended: readonly Suspension[]
  /** Number of connections that were logged out or ended. */
  readonly ended: number
}

/**
 * Creates the watchdog, which enforces the bounds of tenants' sessions. It cancels a statement past its bound and aborts an idle transaction.
 * A tenant with far too many connections is suspended: logged out, and its logins are rejected until the next sweep restores its password.
 *
 * Only a restart of the server ends an expression that computes within one document, which no kill interrupts: the result asks for it. Only a
 * restart closes connections: then the watchdog shuts the server down itself, and its runtime starts it again. A statement within its bound
 * is no reason for a restart, even if its tenant killed it: otherwise a tenant could end the sessions of all others within seconds. The same
 * holds for operations that a tenant hides (survey.ts). A reset that waits for such a statement is a reason at once, because its caller waits;
 * its tenant has no privileges until the reset is done, so it is not suspended.
 */
export function createWatchdog({
  connection: { watch },
  admin,
  waiting,
  restartIntervalMs = RESTART_INTERVAL_MS,
}: Deps): EngineAdmin['enforce'] {
  const own = uidOf(admin)
  /** Number of checks at which each operation was killed, by its id. */
  let killed: ReadonlyMap<number, number> = new Map()
  /** Time of the first of the consecutive checks at which the operations of a tenant were hidden, by its name. */
  let hiddenSince: ReadonlyMap<string, number> = new Map()

  /** Kills operations past their bound and returns them; some may be stuck. */
  async function cancelLate(operations: readonly Operation[], statementMs: number): Promise<readonly Operation[]> {
    const late = operations.filter(
      (operation) => operation.active && tenantOf(operation) !== undefined && runningMs(operation) > statementMs,
    )
    await killOperations(watch, late)
    killed = new Map(late.map(({ opid = 0 }) => [opid, (killed.get(opid) ?? 0) + 1]))
    return late
  }

  /** Returns the tenants whose operations have been hidden past the bound of statements. */
  function hiddenLate(hidden: readonly string[], statementMs: number): readonly string[] {
    const now = performance.now()
    hiddenSince = new Map(hidden.map((name) => [name, hiddenSince.get(name) ?? now]))
    return [...hiddenSince].filter(([, since]) => now - since > statementMs).map(([name]) => name)
  }

  /** Suspends the tenants of stuck and of hidden operations. Returns these tenants. */
  async function suspendStuck(late: readonly Operation[], hidden: readonly string[]): Promise<readonly Suspension[]> {
    const stuck = late.filter(({ opid = 0 }) => (killed.get(opid) ?? 0) >= STUCK_CHECKS)
    const names = [...new Set([...stuck.flatMap((operation) => tenantOf(operation) ?? []), ...hidden])]
    for (const name of names) await changeUser(watch, name, { suspended: true, logOut: true })
    return names.map((name) => ({ name, cause: SuspensionCause.statement }))
  }

  /** Whether a reset waits for one of the operations. */
  function keepsReset({ operations, hidden }: Survey): boolean {
    const killed = operations.filter(({ killPending }) => killPending).map(tenantOf)
    return [...killed, ...hidden].some((name) => name !== undefined && waiting.has(name))
  }

  async function endIdleTransactions(operations: readonly Operation[], idleMs: number): Promise<number> {
    const idle = operations.filter(
      ({ type, transaction, lsid }) =>
        type === 'idleSession' && (transaction?.timeInactiveMicros ?? 0) / 1000 > idleMs && !isOf(lsid?.uid, own),
    )
    if (idle.length > 0) {
      const sessions = idle.map(({ lsid }) => ({ lsid: { id: lsid?.id as unknown, uid: lsid?.uid as unknown } }))
      await watch.command('admin', { killAllSessionsByPattern: sessions })
    }
    return idle.length
  }

  /** Suspends tenants with too many connections. */
  async function suspendHoarders(counts: ReadonlyMap<string, number>, tolerance: number): Promise<Guarded> {
    const candidates = [...counts].filter(([, count]) => count > tolerance).map(([name]) => name)
    if (candidates.length === 0) return { suspended: [], ended: 0 }
    const suspended: Suspension[] = []
    let ended = 0
    for (const { db, customData } of await usersOf(watch)
      .find({ db: { $in: candidates } })
      .toArray()) {
      const count = counts.get(db) ?? 0
      if (count <= (customData?.connections ?? DEFAULT_CONNECTIONS) * tolerance) continue
      await changeUser(watch, db, { suspended: true, logOut: true })
      suspended.push({ name: db, cause: SuspensionCause.connections })
      ended += count
    }
    return { suspended, ended }
  }

  /** Keeps connections free. */
  async function guardConnections(operations: readonly Operation[]): Promise<Guarded> {
    const status = (await watch.command('admin', { serverStatus: 1, repl: 0, metrics: 0, locks: 0 })) as ServerStatus
    const { current, available } = status.connections
    const counts = countConnections(operations)
    const isScarce = available < (current + available) * MIN_FREE
    const guarded = await suspendHoarders(counts, isScarce ? TOLERANCE.scarce : TOLERANCE.normal)
    const named = [...counts.values()].reduce((sum, count) => sum + count, 0)
    const isUseful = current - named > (current + available) * MAX_NAMELESS
    if (!isScarce || !isUseful || Number(status.uptimeMillis) < restartIntervalMs) return guarded
    await shutDown()
    return { ...guarded, ended: current }
  }

  async function shutDown(): Promise<void> {
    // The connection ends without a reply.
    await watch.command('admin', { shutdown: 1, force: true, timeoutSecs: 0 }).catch(() => undefined)
  }

  return async function enforce({ statementMs, idleTransactionMs }) {
    const survey = await surveyOperations(watch, { idleConnections: true, idleSessions: true })
    const { operations, ended, hidden } = survey
    const late = await cancelLate(operations, statementMs)
    const cancelled = late.length + ended.length
    const idle = await endIdleTransactions(operations, idleTransactionMs)
    const stuck = await suspendStuck(late, hiddenLate(hidden, statementMs))
    if (stuck.length > 0) return { cancelled, ended: idle, suspended: stuck, needsRestart: true }
    if (keepsReset(survey)) return { cancelled, ended: idle, needsRestart: true }
    const { suspended, ended: closed } = await guardConnections(operations)
    return { cancelled, ended: idle + closed, ...(suspended.length > 0 && { suspended }) }
  }
}

/** Counts connections by tenant. Pure. */
export function countConnections(operations: readonly Operation[]): ReadonlyMap<string, number> {
  const connections = new Map<string, Set<number>>()
  for (const operation of operations) {
    const name = tenantOf(operation)
    if (name === undefined || operation.connectionId === undefined) continue
    connections.set(name, (connections.get(name) ?? new Set()).add(operation.connectionId))
  }
  return new Map([...connections].map(([name, ids]) => [name, ids.size]))
}

function runningMs({ microsecs_running = 0 }: Operation): number {
  return Number(microsecs_running) / 1000
}

/** Returns the id that sessions of the administrator have: the hash of its name (MongoDB, "Logical Sessions"). */
function uidOf(admin: string): Buffer {
  return createHash('sha256').update(`${admin}@admin`).digest()
}

function isOf(uid: unknown, own: Buffer): boolean {
  return uid instanceof Binary && own.equals(uid.buffer.subarray(0, uid.position))
}
