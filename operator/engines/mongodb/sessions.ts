import { setTimeout as delay } from 'node:timers/promises'
import type { Document } from 'mongodb'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode } from '../engine.ts'
import type { Session } from './connection.ts'
import { ServerCode, serverCodeOf } from './errors.ts'

/** Maximum time for operations to end, and the time between two checks. */
const END_MS = 4_000
const PAUSE_MS = 25
/** Time after which operations that were killed are not waited for. */
const KILLED_MS = 1_000

/** Operation or idle connection of a client (MongoDB documentation, "$currentOp"). */
export interface Operation {
  readonly type: 'op' | 'idleSession' | 'idleCursor'
  readonly opid?: number
  /** `address:port` of the client. Absent for the server's own operations. */
  readonly client?: string
  /** Absent for a connection that has not logged in. */
  readonly connectionId?: number
  /** False for an idle connection. */
  readonly active?: boolean
  readonly microsecs_running?: bigint | number
  /** Whether the operation was killed and has not noticed yet. */
  readonly killPending?: boolean
  readonly effectiveUsers?: readonly { readonly user: string; readonly db: string }[]
  readonly lsid?: Document
  readonly transaction?: { readonly timeInactiveMicros?: number }
}

/** What a list has beside operations that run. */
export interface Scope {
  readonly idleConnections?: boolean
  readonly idleSessions?: boolean
}

/** Fields of {@link Operation}. All others stay on the server: `command` alone has up to 16 MiB, by the tenant's choice. */
const FIELDS = {
  type: 1,
  opid: 1,
  client: 1,
  connectionId: 1,
  active: 1,
  microsecs_running: 1,
  killPending: 1,
  effectiveUsers: 1,
  'lsid.id': 1,
  'lsid.uid': 1,
  'transaction.timeInactiveMicros': 1,
}

/** Excludes the operator's own lists in the name of a tenant ({@link listOwn}). */
const NOT_IMPERSONATED = { runBy: { $exists: false } }

/** Returns the stage that lists operations. The server shortens their commands to 1 kB, except for comments. */
const listing = ({ idleConnections = false, idleSessions = false }: Scope) => ({
  $currentOp: { allUsers: true, idleConnections, idleSessions, truncateOps: true },
})

/**
 * Lists the operations of all clients. The server lists none (10334, "BSONObjectTooLarge") while the description of one has more than 16 MiB:
 * for a cursor it has two comments, of up to 16 MiB each, and any client can give a comment, also without a login. {@link surveyOperations}
 * and {@link listOwn} then list by tenant.
 */
export async function listOperations(session: Session, scope: Scope = {}, match: Document = {}): Promise<readonly Operation[]> {
  return session
    .db('admin')
    .aggregate<Operation>([listing(scope), { $match: { ...match, ...NOT_IMPERSONATED } }, { $project: FIELDS }])
    .toArray()
}

/** Maximum number of operations in one answer; a server has fewer connections. */
const MAX_OPERATIONS = 100_000

/**
 * Lists the operations of one tenant, in its name (MongoDB, "impersonated_user_metadata.idl"): the server then describes no operation of other
 * clients, so none can prevent the list. Undefined when an operation of the tenant itself does. Has no idle transactions.
 */
export async function listOwn(session: Session, name: string, scope: Scope = {}): Promise<readonly Operation[] | undefined> {
  const answer = await unlessTooLarge(
    session.command('admin', {
      aggregate: 1,
      pipeline: [
        { $currentOp: { ...listing(scope).$currentOp, allUsers: false } },
        { $match: NOT_IMPERSONATED },
        { $project: FIELDS },
      ],
      cursor: { batchSize: MAX_OPERATIONS },
      $audit: { $impersonatedUsers: [{ user: name, db: name }], $impersonatedRoles: [] },
    }),
  )
  return (answer as { readonly cursor: { readonly firstBatch: readonly Operation[] } } | undefined)?.cursor.firstBatch
}

/** Lists the operations of one tenant. Undefined when an operation of the tenant prevents the list. */
async function listOf(session: Session, name: string, scope: Scope = {}): Promise<readonly Operation[] | undefined> {
  return (await unlessTooLarge(listOperations(session, scope, { 'effectiveUsers.db': name }))) ?? listOwn(session, name, scope)
}

/** Returns the answer to a list of operations; undefined when the description of an operation is too large. */
export async function unlessTooLarge<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (serverCodeOf(error) !== ServerCode.objectTooLarge) throw error
    return undefined
  }
}

/**
 * Returns the number of a tenant's connections.
 * @throws MooringError `engine_failed` while an operation of the tenant prevents the list
 */
export async function countConnectionsOf(session: Session, name: string): Promise<number> {
  const operations = await listOf(session, name, { idleConnections: true })
  if (!operations) throw new MooringError(EngineCode.failed, `an operation of ${name} prevents the list of its connections`)
  return new Set(operations.flatMap(({ connectionId }) => connectionId ?? [])).size
}

/** Kills operations, and ignores those that have ended. */
export async function killOperations(session: Session, operations: readonly Operation[]): Promise<void> {
  for (const { opid } of operations) if (opid !== undefined) await session.command('admin', { killOp: 1, op: opid })
  if (operations.length > 0) await wake(session)
}

/** Kills the sessions of tenants, with their operations, transactions and cursors. Operations without a session go on. */
export async function killSessions(session: Session, names: readonly string[]): Promise<void> {
  for (const name of names) {
    try {
      await session.command('admin', { killAllSessions: [{ user: name, db: name }] })
    } catch (error) {
      if (serverCodeOf(error) !== ServerCode.userNotFound) throw error
    }
  }
}

/** Writes a note to the oplog: a change stream that waits for a write notices only at the next write that it was killed. */
export async function wake(session: Session): Promise<void> {
  await session.command('admin', { appendOplogNote: 1, data: { wake: true } })
}

/** Whether a client is logged in as the tenant. */
export async function isLoggedIn(session: Session, name: string): Promise<boolean> {
  return (await listOf(session, name, { idleConnections: true }))?.length !== 0
}

/**
 * What is left of a tenant's operations after {@link endWork}. `killed`: all that go on were killed, and notice it at the end of an expression
 * that they compute. Such an operation begins no other step, but an update may still write the document that it computes. `running`: others go
 * on, or an operation of the tenant prevents their list.
 */
export type Ending = 'ended' | 'killed' | 'running'

/**
 * Ends the tenant's operations, transactions and cursors within 4 s. Its connections stay open, because MongoDB has no command that closes
 * one. The caller has taken away the tenant's login or privileges, so that no operation begins anew.
 */
export async function endWork(session: Session, name: string): Promise<Ending> {
  await killSessions(session, [name])
  const begin = performance.now()
  while (performance.now() - begin < END_MS) {
    const left = await listOf(session, name)
    const operations = left?.filter(({ type }) => type === 'op')
    if (operations?.length === 0) return 'ended'
    if (performance.now() - begin > KILLED_MS && operations?.every(({ killPending }) => killPending)) return 'killed'
    if (operations) await killOperations(session, operations)
    else await wake(session)
    await delay(PAUSE_MS)
  }
  return 'running'
}

/**
 * Ends the work of a tenant's former sessions: an operation that was killed is not waited for.
 * @throws MooringError `engine_failed` when others remain after 4 s
 */
export async function endFormerWork(session: Session, name: string): Promise<void> {
  if ((await endWork(session, name)) === 'running')
    throw new MooringError(EngineCode.failed, `operations of ${name} are still running after ${END_MS / 1_000} s`)
}
