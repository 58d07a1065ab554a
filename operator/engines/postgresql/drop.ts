import { setTimeout as delay } from 'node:timers/promises'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode, LoginState } from '../engine.ts'
import { readTenant, kindOf } from './catalog.ts'
import { type Connection, quoteName, type Session } from './connection.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import { removeRole } from './role-traces.ts'

/** Number of attempts to drop a role that receives new grants meanwhile. */
const DROP_ATTEMPTS = 5
/** Bounds of the wait for sessions to end: 4 s. */
const ROUNDS = 160
const PAUSE_MS = 25

interface Deps {
  readonly connection: Connection
  /** Names of databases that this process is building, which must not be dropped. */
  readonly inFlight: ReadonlySet<string>
}

/** Drops the database and the role of a name, including other tenants' grants to the role, and verifies that the catalog has neither. */
export type Discard = (name: string) => Promise<void>

/** Creates the removal of databases and roles on one server. It repeats a drop that meets new grants to the role. */
export function createDiscard({ connection, inFlight }: Deps): Discard {
  async function dropDatabase(name: string): Promise<void> {
    await connection.drops.query(`DROP DATABASE IF EXISTS ${quoteName(name)} WITH (FORCE)`)
  }

  async function dropRole(role: string, attempts = DROP_ATTEMPTS): Promise<void> {
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
    await connection.inside(database, (session) => removeRole(session, role))
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

/**
 * Ends the tenant's sessions until two consecutive checks find none: `pg_stat_activity` lists a login that is in progress only after it
 * has completed. The caller has disabled new logins.
 * @throws MooringError `engine_failed` when sessions remain after 4 s
 */
export async function endSessions(session: Session, name: string): Promise<void> {
  let emptyChecks = 0
  for (let round = 0; round < ROUNDS; round++) {
    emptyChecks = (await terminateSessions(session, name)) === 0 ? emptyChecks + 1 : 0
    if (emptyChecks === 2) return
    await delay(PAUSE_MS)
  }
  throw new MooringError(EngineCode.failed, `sessions of ${name} do not end`)
}

/** Terminates every session of the tenant and every session on its database. Returns the number of these sessions. */
async function terminateSessions(session: Session, name: string): Promise<number> {
  const ended = await session.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE (usename = $1 OR datname = $1) AND backend_type = 'client backend' AND usename <> current_user`,
    [name],
  )
  return ended.length
}
