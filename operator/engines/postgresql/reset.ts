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

/** Replaces the database of a role, or creates a missing one. The role must exist. */
export type Replace = (name: string, origin: Origin) => Promise<void>

const ATTEMPTS = 3

/**
 * Builds the new database beside the old one. One transaction then renames the old database to `trash_…`, which tidy drops, and gives its
 * name to the new one. Before that, the old database rejects connections; the login stays as it is, so that a crash needs no repair of it.
 * On a full disk, drops the old database first.
 */
export function createReplace({ connection, builder }: Deps): Replace {
  async function swap(name: string, making: string, attempts = ATTEMPTS): Promise<void> {
    const database = quoteName(name)
    const { database: exists } = await readTenant(connection, name)
    if (exists) {
      await connection.tenants.query(`ALTER DATABASE ${database} ALLOW_CONNECTIONS false`)
      await endSessions(connection.tenants, name)
    }
    const discardOld = exists ? [`ALTER DATABASE ${database} RENAME TO ${quoteName(freshName('trash'))}`] : []
    const installNew = [grantDatabase(making, name), `ALTER DATABASE ${quoteName(making)} RENAME TO ${database}`]
    try {
      // A reset also removes the tenant's own settings (ALTER ROLE … SET).
      await connection.tenants.query([...discardOld, ...installNew, `ALTER ROLE ${database} RESET ALL`].join('; '))
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
      // The disk has no space for both databases, and the reset discards the old data anyway. After a crash here the reset is repeated.
      await connection.tenants.query(`ALTER DATABASE ${quoteName(name)} ALLOW_CONNECTIONS false`)
      await endSessions(connection.tenants, name)
      await connection.drops.query(`DROP DATABASE IF EXISTS ${quoteName(name)} WITH (FORCE)`)
      await build()
    }
  }
}
