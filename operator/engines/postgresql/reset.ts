import { MooringError } from '../../../shared/errors.ts'
import type { Origin } from '../engine.ts'
import { EngineCode, LoginState } from '../engine.ts'
import { type Builder, grantDatabase } from './build.ts'
import { readTenant } from './catalog.ts'
import type { Connection } from './connection.ts'
import { quoteName } from './connection.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import { freshName } from './names.ts'
import { endSessions } from './sessions.ts'

interface Deps {
  readonly connection: Connection
  readonly builder: Builder
}

/** Puts a new database in the place of a role's own, or where it has none. The role must exist. */
export type Replace = (name: string, origin: Origin) => Promise<void>

const ATTEMPTS = 3

/**
 * The new database is built beside the old one; then one transaction renames the old away (`trash_…`, for tidy) and the new into its
 * place. The old one is closed before that, not the login: so the login's state needs no restoring after a crash. On a full disk the old one
 * goes first.
 */
export function replacing({ connection, builder }: Deps): Replace {
  async function swap(name: string, making: string, attempts = ATTEMPTS): Promise<void> {
    const database = quoteName(name)
    const { database: exists } = await readTenant(connection, name)
    if (exists) {
      await connection.tenants.query(`ALTER DATABASE ${database} ALLOW_CONNECTIONS false`)
      await endSessions(connection.tenants, name)
    }
    const away = exists ? [`ALTER DATABASE ${database} RENAME TO ${quoteName(freshName('trash'))}`] : []
    const place = [grantDatabase(making, name), `ALTER DATABASE ${quoteName(making)} RENAME TO ${database}`]
    try {
      // What the tenant set for itself (ALTER ROLE … SET) is part of what a reset empties.
      await connection.tenants.query([...away, ...place, `ALTER ROLE ${database} RESET ALL`].join('; '))
    } catch (error) {
      if (attempts === 1 || sqlStateOf(error) !== SqlState.objectInUse) throw error
      await swap(name, making, attempts - 1)
    }
  }

  return async function replace(name, origin) {
    const { login } = await readTenant(connection, name)
    if (login === LoginState.absent) throw new MooringError(EngineCode.failed, `there is no login ${name} on this server`)
    const build = () => builder.forRole(name, origin, (making) => swap(name, making))
    try {
      await build()
    } catch (error) {
      if (sqlStateOf(error) !== SqlState.diskFull || origin.template !== undefined) throw error
      // There is no room for two, and what is in the old one is to go anyway. After a crash here the reset is done again.
      await connection.tenants.query(`ALTER DATABASE ${quoteName(name)} ALLOW_CONNECTIONS false`)
      await endSessions(connection.tenants, name)
      await connection.drops.query(`DROP DATABASE IF EXISTS ${quoteName(name)} WITH (FORCE)`)
      await build()
    }
  }
}
