import { MooringError } from '../../../shared/errors.ts'
import { EngineCode, type Tenant } from '../engine.ts'
import { Mark, markOfName, unmarking } from './closing.ts'
import { type Connection, quoteText } from './connection.ts'
import type { Scram } from '../scram.ts'
import { endSessions } from './sessions/ended-sessions.ts'

interface Deps {
  readonly connection: Connection
  readonly scram: Scram
}

/**
 * Returns the statement that gives a role the password of a SCRAM verifier. ALTER ROLE … PASSWORD would derive a key once more, to check for
 * an empty password, which takes most of a claim's time. `expired`: the server rejects every login of the role, even with another password
 * that the tenant sets meanwhile.
 */
export function passwordStatement(name: string, verifier: string, expired = false): string {
  const until = expired ? `'-infinity'` : 'NULL'
  return `UPDATE pg_authid SET rolpassword = ${quoteText(verifier)}, rolvaliduntil = ${until} WHERE rolname = ${quoteText(name)}`
}

/**
 * Returns the statement that removes all members of a role. Up to 14 a tenant can make other roles members of its own role, and a member can
 * set the role's password after each rotation. Tenants do not need members: access rules keep members out of the role's database.
 */
function removeMembers(name: string): string {
  return `DELETE FROM pg_auth_members WHERE roleid = (SELECT oid FROM pg_authid WHERE rolname = ${quoteText(name)})`
}

/** Passwords of tenants' logins on one server. */
export interface Passwords {
  /**
   * Replaces the password and ends every session that was opened with another one. The server rejects logins meanwhile, because a session of
   * the old password could set a third one and log in with it. After a crash the role rejects logins until the rotation is repeated.
   */
  rotate(tenant: Tenant): Promise<void>
  /** Returns the names of the tenants whose login has another password than the given one, or is suspended. */
  findChanged(tenants: readonly Tenant[]): Promise<readonly string[]>
}

export function createPasswords({ connection, scram }: Deps): Passwords {
  /** Cache of matching passwords and stored verifiers by tenant, because each comparison takes a key derivation. */
  let known = new Map<string, { readonly password: string; readonly stored: string }>()

  async function rotate({ name, password }: Tenant): Promise<void> {
    const verifier = await scram.verifier(password)
    const found = await connection.tenants.query(`${passwordStatement(name, verifier, true)} RETURNING rolname`)
    if (found.length === 0) throw new MooringError(EngineCode.failed, `there is no login ${name} on this server`)
    await endSessions(connection.tenants, name)
    await connection.tenants.query(
      `${removeMembers(name)}; ${passwordStatement(name, verifier)}; ${unmarking(name, Mark.suspended)}`,
    )
  }

  async function isRight({ name, password }: Tenant, stored: string): Promise<boolean> {
    const before = known.get(name)
    return (before?.password === password && before.stored === stored) || scram.matches(password, stored)
  }

  async function findChanged(tenants: readonly Tenant[]): Promise<readonly string[]> {
    const rows = await connection.watch.query<{ name: string; stored: string | null; expired: boolean }>(
      `SELECT rolname AS name, rolpassword AS stored, coalesce(rolvaliduntil < now() OR ${markOfName('rolname')} = $2, false) AS expired
       FROM pg_authid WHERE rolname = ANY ($1)`,
      [tenants.map(({ name }) => name), Mark.suspended],
    )
    const roles = new Map(rows.map((row) => [row.name, row]))
    const right: typeof known = new Map()
    const changed: string[] = []
    for (const tenant of tenants) {
      const { stored, expired } = roles.get(tenant.name) ?? { stored: undefined, expired: false }
      // The reconciler finds missing roles in the catalog.
      if (stored === undefined) continue
      if (!expired && stored !== null && (await isRight(tenant, stored))) right.set(tenant.name, { ...tenant, stored })
      else changed.push(tenant.name)
    }
    known = right
    return changed
  }

  return { rotate, findChanged }
}
