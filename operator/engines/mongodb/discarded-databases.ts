import type { Session } from './connection.ts'
import { type RoleDocument, rolesOf, usersOf } from './users.ts'

/**
 * Removes login and role of a tenant. The login goes last: as long as it exists, the catalog has the tenant. The mark of a discarded database
 * stays.
 */
export async function removeUser(session: Session, name: string): Promise<void> {
  await rolesOf(session).deleteMany({ db: name, role: { $not: MARK } })
  await usersOf(session).deleteMany({ db: name })
}

/** Name of the role that marks a discarded database: its owner, if known (`EngineAdmin.drop`). */
const MARK = /^gone_([0-9a-f]{8})?$/

/** Database that a drop left behind, because an operation in it goes on. No tenant gets its name again. */
export interface DiscardedDatabase {
  readonly name: string
  /** Empty when unknown. */
  readonly owner: string
}

/** Returns the discarded database that a role marks; undefined for another role. */
export function discardedBy({ db, role }: Pick<RoleDocument, 'db' | 'role'>): DiscardedDatabase | undefined {
  const mark = MARK.exec(role)
  return mark ? { name: db, owner: mark[1] ?? '' } : undefined
}

/** Marks the database of a tenant as discarded, by a role that has no privileges. */
export async function markDiscarded(session: Session, { name, owner }: DiscardedDatabase): Promise<void> {
  const role = `gone_${owner}`
  const mark = { role, db: name, privileges: [], roles: [] }
  await rolesOf(session).replaceOne({ _id: `${name}.${role}` }, mark, { upsert: true })
}

/** Lists the discarded databases: all, or one by its name. */
export async function listDiscarded(session: Session, name?: string): Promise<readonly DiscardedDatabase[]> {
  const marks = await rolesOf(session)
    .find({ role: MARK, ...(name !== undefined && { db: name }) })
    .toArray()
  return marks.flatMap((mark) => discardedBy(mark) ?? [])
}

/** Removes the mark of a database that is gone. */
export async function unmark(session: Session, name: string): Promise<void> {
  await rolesOf(session).deleteMany({ db: name, role: MARK })
}
