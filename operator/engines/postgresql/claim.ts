import type { EngineAdmin, Limits, Origin, Tenant, TenantState } from '../engine.ts'
import { LoginState } from '../engine.ts'
import { adopt } from './adopt.ts'
import { type Builder, grantDatabase } from './build.ts'
import { readTenant } from './catalog.ts'
import type { Connection } from './connection.ts'
import { quoteName } from './connection.ts'
import { passwordStatement } from './password.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import { assertTenantName } from './names.ts'
import { rename, type WarmPool } from './pool.ts'
import type { Replace } from './reset.ts'
import type { Scram } from './scram.ts'

interface Deps {
  readonly connection: Connection
  readonly builder: Builder
  readonly pool: WarmPool
  readonly replace: Replace
  readonly scram: Scram
  /** Called at the beginning of a claim, because the tenant's login is verified next. */
  readonly expectLogin: (name: string) => void
}

/** Number of stale spares after which the pool counts as empty. */
const ATTEMPTS = 10

/** Errors that mean: the tenant's name exists, perhaps from this claim before a crash. */
const NAME_EXISTS: readonly unknown[] = [SqlState.duplicateObject, SqlState.duplicateDatabase]
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
export function createClaim({ connection, builder, pool, replace, scram, expectLogin }: Deps): EngineAdmin['claim'] {
  type Outcome = 'claimed' | 'taken' | 'empty'

  async function fromPool(handOver: (from: string) => Promise<void>): Promise<Outcome> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
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
    await connection.tenants.query(`${grantDatabase(name, name)}; ${open}`)
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
