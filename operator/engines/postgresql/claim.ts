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
  /** Told at the beginning of a claim: its login is verified next. */
  readonly expectLogin: (name: string) => void
}

/** Spares that may turn out to be gone before the pool counts as empty. */
const ATTEMPTS = 10

/** The name is taken: somebody was here before, perhaps this claim itself before a crash. */
const TAKEN: readonly unknown[] = [SqlState.duplicateObject, SqlState.duplicateDatabase]
/** The spare is gone, in use, or being claimed by another process. */
const LOST: readonly unknown[] = [
  SqlState.undefinedObject,
  SqlState.undefinedDatabase,
  SqlState.objectInUse,
  SqlState.internalError,
]

/** A claim: with a warm pool and a new name one round trip and one transaction, in which the server itself sees that the name is free. */
export function claiming({ connection, builder, pool, replace, scram, expectLogin }: Deps): EngineAdmin['claim'] {
  type Outcome = 'claimed' | 'taken' | 'empty'

  async function fromPool(handOver: (from: string) => Promise<void>): Promise<Outcome> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      try {
        return (await pool.withSpare(handOver)) ? 'claimed' : 'empty'
      } catch (error) {
        const state = sqlStateOf(error)
        if (TAKEN.includes(state)) return 'taken'
        if (!LOST.includes(state)) throw error
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

  /** The former login is gone with all that it owned, so what is there is the admin's. */
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
