import { type EngineAdmin, type Limits, type Origin, type Tenant, type TenantState, LoginState, EngineCode } from '../engine.ts'
import { adopt } from './privileges.ts'
import { type Builder, grantDatabase } from './build.ts'
import { readTenant, assertTenantName, freshName } from './catalog.ts'
import { type Connection, quoteName } from './connection.ts'
import { passwordStatement } from './password.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import { keepingClosed, unmarking } from './closing.ts'
import { rename, renameDatabase, type WarmPool } from './pool.ts'
import type { Scram } from '../scram.ts'
import { MooringError } from '../../../shared/errors.ts'
import { closingDatabase } from './drop.ts'
import { END_WITHIN_MS, tryEndSessions } from './sessions/ended-sessions.ts'
import type { Removals } from './removals.ts'

interface ClaimDeps {
  readonly connection: Connection
  readonly builder: Builder
  readonly pool: WarmPool
  readonly replace: Replace
  readonly scram: Scram
  /** Called at the beginning of a claim, because the tenant's login is verified next. */
  readonly expectLogin: (name: string) => void
}

/** Number of stale spares after which the pool counts as empty. */
const STALE_SPARES = 10

/** Errors that mean: the tenant's name exists, perhaps from this claim before a crash. */
const NAME_EXISTS: readonly unknown[] = [SqlState.duplicateObject, SqlState.uniqueViolation]
/** Errors that mean: the spare is missing, in use, or being claimed by another process. */
const SPARE_UNAVAILABLE: readonly unknown[] = [
  SqlState.undefinedObject,
  SqlState.undefinedDatabase,
  SqlState.objectInUse,
  SqlState.internalError,
]

/**
 * Returns the claim of this engine. With a spare and a new name it takes one round trip and one transaction, which fails when the name
 * exists.
 */
export function createClaim({ connection, builder, pool, replace, scram, expectLogin }: ClaimDeps): EngineAdmin['claim'] {
  type Outcome = 'claimed' | 'taken' | 'empty'

  async function fromPool(handOver: (from: string) => Promise<void>): Promise<Outcome> {
    for (let attempt = 0; attempt < STALE_SPARES; attempt++) {
      try {
        return (await pool.withSpare(handOver)) ? 'claimed' : 'empty'
      } catch (error) {
        const state = sqlStateOf(error)
        if (NAME_EXISTS.includes(state)) return 'taken'
        if (!SPARE_UNAVAILABLE.includes(state)) throw error
      }
    }
    return 'empty'
  }

  async function complete(name: string, found: TenantState, origin: Origin): Promise<void> {
    if (!found.database) await replace(name, origin)
    else if (found.login === LoginState.absent) await giveTo(name)
    const database = quoteName(name)
    const open = `REVOKE ALL ON DATABASE ${database} FROM PUBLIC; ALTER DATABASE ${database} ALLOW_CONNECTIONS true`
    await connection.tenants.query(`${grantDatabase(name, name)}; ${open}; ${unmarking(name)}`)
  }

  /** Gives the database to a new role. The former role was dropped with its objects, so the administrator owns the rest. */
  async function giveTo(name: string): Promise<void> {
    await connection.inside(name, async (session) => {
      await session.query('CREATE SCHEMA IF NOT EXISTS public')
      await adopt(session, { owner: name, origin: {} })
    })
  }

  return async function claim(tenant: Tenant, limits: Limits, origin: Origin): Promise<void> {
    assertTenantName(tenant.name)
    expectLogin(tenant.name)
    const name = quoteName(tenant.name)
    const password = passwordStatement(tenant.name, await scram.verifier(tenant.password))
    const limit = `ALTER ROLE ${name} LOGIN CONNECTION LIMIT ${limits.connections}`
    const handOver = async (from: string): Promise<void> => {
      await connection.query(`${rename(from, tenant.name)}; ${limit}; ${password}`)
    }
    if (origin.template === undefined && (await fromPool(handOver)) === 'claimed') return

    const found = await readTenant(connection, tenant.name)
    if (!found.database && found.login === LoginState.absent) {
      if (origin.template === undefined) await pool.withNewSpare(handOver)
      else await builder.withRole(origin, handOver)
      return
    }
    if (found.login === LoginState.absent) await connection.tenants.query(`CREATE ROLE ${name} NOLOGIN`)
    await complete(tenant.name, found, origin)
    await connection.tenants.query(`${limit}; ${password}`)
  }
}

interface ReplaceDeps {
  readonly connection: Connection
  readonly builder: Builder
  readonly removals: Removals
}

/** Replaces the database of a role, or creates a missing one. The role must exist. `owner`: see {@link freshName}. */
export type Replace = (name: string, origin: Origin, owner?: string) => Promise<void>

const discarding = (name: string, trash: string): string => `${keepingClosed(name)}; ${closingDatabase(name, trash)}`

/**
 * Builds the new database beside the old one. One transaction then closes the old database and renames it to `trash_…`, which tidy drops, and
 * gives its name to the new one. The login stays as it is, so that a crash needs no repair of it. Sessions in the old database end next; one
 * that heeds nothing goes on there. On a full disk, drops the old database first.
 */
export function createReplace({ connection, builder, removals }: ReplaceDeps): Replace {
  async function swap(name: string, making: string, owner?: string): Promise<void> {
    const database = quoteName(name)
    const { database: exists } = await readTenant(connection, name)
    const trash = freshName('trash', owner)
    const discardOld = exists ? [discarding(name, trash)] : []
    const installNew = [grantDatabase(making, name), renameDatabase(making, name)]
    // A reset also removes the tenant's own settings (ALTER ROLE … SET).
    await connection.tenants.query([...discardOld, ...installNew, `ALTER ROLE ${database} RESET ALL`].join('; '))
    if (exists) await tryEndSessions(connection, trash, END_WITHIN_MS.attempted)
  }

  return async function replace(name, origin, owner) {
    const { login } = await readTenant(connection, name)
    if (login === LoginState.absent) throw new MooringError(EngineCode.failed, `there is no login ${name} on this server`)
    const build = () => builder.forRole(name, origin, (making) => swap(name, making, owner))
    try {
      await build()
    } catch (error) {
      if (sqlStateOf(error) !== SqlState.diskFull || origin.template !== undefined) throw error
      // The disk has no space for both databases, and the reset discards the old data anyway. After a crash here the reset is repeated.
      const trash = freshName('trash', owner)
      await connection.tenants.query(discarding(name, trash))
      if ((await removals.remove(trash)) !== 'done') throw error
      await build()
    }
  }
}
