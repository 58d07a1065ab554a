import { MooringError } from '../../../shared/errors.ts'
import { EngineCode, LoginState } from '../engine.ts'
import { readTenant } from './catalog.ts'
import type { Connection } from './connection.ts'
import { quoteName } from './connection.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import { kindOf } from './names.ts'
import { endSessions } from './sessions.ts'

const ATTEMPTS = 5

interface Deps {
  readonly connection: Connection
  /** Names of databases that this process is building, which must not be dropped. */
  readonly inFlight: ReadonlySet<string>
}

/** Drops the database and the role of a name, including other tenants' grants to the role, and verifies that the catalog has neither. */
export type Discard = (name: string) => Promise<void>

export function createDiscard({ connection, inFlight }: Deps): Discard {
  async function dropDatabase(name: string): Promise<void> {
    await connection.drops.query(`DROP DATABASE IF EXISTS ${quoteName(name)} WITH (FORCE)`)
  }

  async function dropRole(role: string, attempts = ATTEMPTS): Promise<void> {
    await endSessions(connection.tenants, role)
    try {
      await connection.tenants.query(`DROP ROLE IF EXISTS ${quoteName(role)}`)
    } catch (error) {
      if (attempts === 1 || sqlStateOf(error) !== SqlState.dependentObjects) throw error
      await release(role)
      await dropRole(role, attempts - 1)
    }
  }

  /** Removes grants and policies for the role in other tenants' databases, which would prevent DROP ROLE. */
  async function release(role: string): Promise<void> {
    // Revokes the role's privileges on databases. The maintenance database itself has no object of a tenant.
    await connection.tenants.query(`DROP OWNED BY ${quoteName(role)}`)
    for (const database of await databasesNaming(role)) {
      if (inFlight.has(database)) throw new MooringError(EngineCode.unavailable, `${role} is being copied`)
      if (kindOf(database) === 'making' || kindOf(database) === 'trash') await dropDatabase(database)
      else await releaseInside(database, role)
    }
  }

  async function databasesNaming(role: string): Promise<readonly string[]> {
    const rows = await connection.query<{ datname: string }>(
      `SELECT DISTINCT datname FROM pg_shdepend JOIN pg_database d ON d.oid = dbid
       WHERE refclassid = 'pg_authid'::regclass AND refobjid = (SELECT oid FROM pg_roles WHERE rolname = $1)`,
      [role],
    )
    return rows.map(({ datname }) => datname)
  }

  async function releaseInside(database: string, role: string): Promise<void> {
    await connection.inside(database, (session) => session.query(`DROP OWNED BY ${quoteName(role)} CASCADE`))
  }

  return async function discard(name) {
    const found = await readTenant(connection, name)
    if (found.login === LoginState.enabled) await connection.tenants.query(`ALTER ROLE ${quoteName(name)} NOLOGIN`)
    if (found.database) await dropDatabase(name)
    if (found.login !== LoginState.absent) await dropRole(name)
    const left = await readTenant(connection, name)
    if (left.database || left.login !== LoginState.absent)
      throw new MooringError(EngineCode.failed, `${name} is still in the catalog`)
  }
}
