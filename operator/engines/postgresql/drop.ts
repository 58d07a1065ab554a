import { LoginState } from '../engine.ts'
import { freshName, kindOf, readTenant } from './catalog.ts'
import { closeLogin } from './closing.ts'
import { type Connection, quoteText } from './connection.ts'
import type { Removal, Removals } from './removals.ts'
import { END_WITHIN_MS, tryEndSessions } from './sessions/ended-sessions.ts'

interface Deps {
  readonly connection: Connection
  readonly removals: Removals
}

/**
 * Takes the database and the role of a name out of use for good, and removes them. What is not removed in time, `tidy` removes later: also a
 * database that keeps its name, because its tenant has it locked, and is marked (closing.ts). `owner`: see {@link freshName}.
 */
export type Discard = (name: string, owner?: string) => Promise<Removal>

/** Creates the removal of databases and roles on one server. */
export function createDiscard({ connection, removals }: Deps): Discard {
  return async function discard(name, owner) {
    const kind = kindOf(name)
    // A leftover accepts no logins already.
    if (kind === 'making' || kind === 'trash') return removals.remove(name)
    const found = await readTenant(connection, name)
    if (!found.database && found.login === LoginState.absent) return 'done'
    const trash = found.discardedAs ?? freshName('trash', owner)
    if (await closeLogin(connection, name, { statements: closing(name, trash), mark: trash })) return removals.remove(trash)
    await tryEndSessions(connection, name, END_WITHIN_MS.attempted)
    return 'in use'
  }
}

/**
 * Returns the statements, one transaction, that close the database and the role of a name: they accept no logins any more, and the name is
 * free. ALTER DATABASE … RENAME waits for the locks of other tenants on the database, and fails while a session is in it. An update of the
 * catalog waits for nothing but a transaction that changes the same row, which only the tenant itself can open. A session that goes on knows
 * its database by oid.
 */
export function closing(name: string, trash: string): string {
  return `UPDATE pg_authid SET rolname = ${quoteText(trash)}, rolcanlogin = false, rolpassword = NULL, rolvaliduntil = '-infinity'
    WHERE rolname = ${quoteText(name)} AND NOT rolsuper; ${closingDatabase(name, trash)}`
}

/** Returns the statement that closes and renames a database as {@link closing} does. Its role stays. */
export function closingDatabase(name: string, trash: string): string {
  return `UPDATE pg_database SET datname = ${quoteText(trash)}, datallowconn = false WHERE datname = ${quoteText(name)}`
}
