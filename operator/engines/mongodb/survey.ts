import { setTimeout as delay } from 'node:timers/promises'
import type { Session } from './connection.ts'
import { killSessions, listOperations, listOwn, type Operation, type Scope, unlessTooLarge, wake } from './sessions.ts'
import { listDiscarded } from './discarded-databases.ts'
import { usersOf } from './users.ts'

/** Maximum time for operations of killed sessions to end, and the time between two checks. */
const END_MS = 1_000
const PAUSE_MS = 25

/** Operations of all tenants of a server. */
export interface Survey {
  /** While an operation prevents the list of all: those that can be listed by tenant, without idle transactions. */
  readonly operations: readonly Operation[]
  /** Names of tenants that prevented the list. Their sessions were killed. */
  readonly ended: readonly string[]
  /** Names of tenants that still prevent it, by an operation without a session. It has no number by which it could be killed. */
  readonly hidden: readonly string[]
}

/**
 * Lists the operations of a server, although one with a large comment may prevent the list of all ({@link listOperations}). Kills the sessions
 * of the tenants that prevent it; the operations of other tenants are listed in any case.
 */
export async function surveyOperations(watch: Session, scope: Scope): Promise<Survey> {
  const all = await unlessTooLarge(listOperations(watch, scope))
  if (all) return { operations: all, ended: [], hidden: [] }
  // The operations of a tenant without a login may go on in its discarded database.
  const owners = [...(await usersOf(watch).distinct('db')), ...(await listDiscarded(watch)).map(({ name }) => name)]
  const names = owners.filter((name) => name !== 'admin')
  const byTenant = await surveyByTenant(watch, names, scope)
  const ended = byTenant.hidden
  if (ended.length === 0) return { ...byTenant, ended }
  const deadline = performance.now() + END_MS
  while (performance.now() < deadline) {
    await killSessions(watch, ended)
    await wake(watch)
    const operations = await unlessTooLarge(listOperations(watch, scope))
    if (operations) return { operations, ended, hidden: [] }
    await delay(PAUSE_MS)
  }
  return { ...(await surveyByTenant(watch, names, scope)), ended }
}

async function surveyByTenant(watch: Session, names: readonly string[], scope: Scope) {
  const operations: Operation[] = []
  const hidden: string[] = []
  for (const name of names) {
    const own = await listOwn(watch, name, scope)
    if (own) operations.push(...own)
    else hidden.push(name)
  }
  return { operations, hidden }
}
