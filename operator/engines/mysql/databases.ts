import { MooringError } from '../../../shared/errors.ts'
import { EngineCode, type EngineAdmin, LoginState, type Origin } from '../engine.ts'
import { accountStatements, assertAccount, grantDatabase } from './accounts.ts'
import {
  assertTenantName,
  discardedBy,
  goneMarkOf,
  kindOf,
  markedBy,
  markOf,
  type MysqlFamily,
  quoteName,
  readTenant,
  requestFor,
} from './catalog.ts'
import type { Connection } from './connection.ts'
import { assertCopyable, copyDatabase } from './copy/copy.ts'
import { Errno, errnoOf } from './errors.ts'
import { endSessions, rollBackDetached } from './sessions.ts'

const ATTEMPTS = 4

/** Errors of a statement about a directory that belongs to no database. */
const STRAY_DIRECTORY: readonly unknown[] = [Errno.directoryExists, Errno.directoryWithoutDatabase]

const beingRemoved = (name: string, cause: unknown): MooringError =>
  new MooringError(
    EngineCode.unavailable,
    `a crash left the directory of the database ${name}; it is being removed, and the change succeeds after that`,
    { cause },
  )

interface Deps {
  readonly connection: Connection
  readonly family: MysqlFamily
}

/** Creation, replacement and removal of tenants' databases and accounts. */
export interface Databases extends Pick<EngineAdmin, 'claim' | 'reset' | 'drop'> {
  /** Names of tenants whose databases this process is building. */
  readonly inFlight: ReadonlySet<string>
  /**
   * Drops a leftover: a mark with its incomplete or discarded database, or a request to remove a directory. Does nothing where sessions keep a
   * discarded database from being removed.
   */
  removeLeftover(name: string): Promise<void>
}

/**
 * Creates these operations for one server. The mark of a database that is being copied is an empty database `making_…`: it is created before
 * the database and dropped after the copy. A marked database counts as absent, and the next claim, reset or tidy drops it first. MySQL can
 * neither rename a database nor create one in a transaction.
 */
export function createDatabases({ connection, family }: Deps): Databases {
  const account = accountStatements(family)
  const inFlight = new Set<string>()
  /** Databases for which this process made a request to remove the stray directory, and has not withdrawn it. */
  const requested = new Set<string>()

  /** Runs `work`. @throws MooringError `engine_unavailable` while another change of the tenant's database is running */
  async function exclusively<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (inFlight.has(name)) throw new MooringError(EngineCode.unavailable, `the database ${name} is being changed`)
    inFlight.add(name)
    try {
      return await work()
    } finally {
      inFlight.delete(name)
    }
  }

  async function createDatabase(name: string): Promise<void> {
    // A request that is served only now would remove the directory of the new database.
    if (requested.has(name)) {
      await withdrawRequest(name)
      requested.delete(name)
    }
    try {
      await connection.tenants.query(`CREATE DATABASE IF NOT EXISTS ${quoteName(name)}`)
    } catch (error) {
      if (errnoOf(error) === Errno.directoryExists) await requestRemoval(name, error)
      throw error
    }
  }

  /**
   * Requests the removal of the stray directory `name` (stray-directories.ts).
   * @throws MooringError `engine_unavailable` always: the change succeeds once the directory is gone
   */
  async function requestRemoval(name: string, cause: unknown): Promise<never> {
    requested.add(name)
    await withdrawRequest(name)
    try {
      await connection.tenants.query(`CREATE DATABASE ${quoteName(requestFor(name))}`)
    } catch (error) {
      // The request has a stray directory itself: that is enough for the loop, which reads directories only.
      if (!STRAY_DIRECTORY.includes(errnoOf(error))) throw error
    }
    throw beingRemoved(name, cause)
  }

  /** @throws MooringError `engine_unavailable` when the request has only a directory: it stands until the loop has served it */
  async function withdrawRequest(name: string): Promise<void> {
    try {
      // A served request has no directory any more, and would not be served again.
      await connection.tenants.query(`DROP DATABASE IF EXISTS ${quoteName(requestFor(name))}`)
    } catch (error) {
      throw STRAY_DIRECTORY.includes(errnoOf(error)) ? beingRemoved(name, error) : error
    }
  }

  /** Creates the missing database and copies the template, if any, into it. */
  async function build(name: string, { template }: Origin): Promise<void> {
    if (template === undefined) {
      await createDatabase(name)
      return
    }
    await createDatabase(markOf(name))
    await createDatabase(name)
    await copyDatabase({ connection, family }, { from: template, to: name })
    await connection.tenants.query(`DROP DATABASE IF EXISTS ${quoteName(markOf(name))}`)
  }

  /** Drops a database whose tenant has no sessions. Removes prepared XA transactions of neighbours and stray tables when these prevent it. */
  async function dropDatabase(name: string, attempts = ATTEMPTS): Promise<void> {
    try {
      await connection.tenants.query(`DROP DATABASE IF EXISTS ${quoteName(name)}`)
    } catch (error) {
      if (errnoOf(error) === Errno.directoryWithoutDatabase) await requestRemoval(name, error)
      if (attempts === 1) throw error
      if (errnoOf(error) === Errno.lockWaitTimeout) await rollBackDetached(connection.tenants, family)
      else if (errnoOf(error) === Errno.cannotRemoveDirectory) await dropStrayTables(name)
      else throw error
      await endSessions(connection.tenants, name)
      await dropDatabase(name, attempts - 1)
    }
  }

  /** Drops the temporary tables `#sql…` that a crash during ALTER TABLE leaves behind, which DROP DATABASE overlooks (MySQL 5.7). */
  async function dropStrayTables(name: string): Promise<void> {
    const tables = await connection.tenants.query<{ name: string }>(
      'SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?',
      [name],
    )
    for (const table of tables) await connection.tenants.query(`DROP TABLE IF EXISTS ${quoteName(name)}.${quoteName(table.name)}`)
  }

  /**
   * Ends the tenant's work in its database before that is dropped. MySQL 5.7 drops a database in spite of prepared XA transactions, which would
   * survive with the locks and the undo log of tables that no longer exist. @returns false while a killed session goes on
   */
  async function vacate(name: string): Promise<boolean> {
    const haveEnded = await endSessions(connection.tenants, name)
    await rollBackDetached(connection.tenants, family)
    return haveEnded
  }

  /** Drops an incomplete database, then its mark. */
  async function removeMarked(name: string): Promise<void> {
    await vacate(name)
    await dropDatabase(name)
    await dropDatabase(markOf(name))
  }

  /** Removes the database of a tenant that cannot log in. @returns false while a killed session keeps locks in it */
  async function tryRemove(name: string): Promise<boolean> {
    const haveEnded = await vacate(name)
    try {
      await dropDatabase(name, haveEnded ? ATTEMPTS : 1)
    } catch (error) {
      if (haveEnded || errnoOf(error) !== Errno.lockWaitTimeout) throw error
      return false
    }
    await dropDatabase(markOf(name))
    return true
  }

  /** Removes the database and the account, or marks the database as discarded: it keeps its name, which no tenant gets again. */
  async function discard(name: string, owner?: string): Promise<void> {
    const { login, isDiscarded } = await readTenant(connection, family, name)
    if (login === LoginState.enabled) await connection.tenants.query(account.lock(name))
    if (!isDiscarded && !(await tryRemove(name))) await createDatabase(goneMarkOf(name, owner))
    await connection.tenants.query(account.drop(name))
    const left = await readTenant(connection, family, name)
    if (left.database || left.isIncomplete || left.login !== LoginState.absent)
      throw new MooringError(EngineCode.failed, `${name} is still in the catalog`)
  }

  return {
    inFlight,
    async claim(tenant, limits, origin) {
      const { name } = tenant
      assertTenantName(name)
      await exclusively(name, async () => {
        const found = await readTenant(connection, family, name)
        if (found.isDiscarded) throw new MooringError(EngineCode.failed, `the database ${name} is discarded`)
        if (!found.database && origin.template !== undefined) await assertCopyable({ connection, family }, origin.template)
        if (found.isIncomplete) await removeMarked(name)
        let { login } = found
        if (!found.database && origin.template !== undefined && login === LoginState.absent) {
          // Views that call functions can be created only when their definer exists.
          await connection.query(`${account.create(tenant, limits, 'blocked')}; ${grantDatabase(name, family)}`)
          login = LoginState.enabled
        }
        if (!found.database) await build(name, origin)
        const open = login === LoginState.absent ? account.create(tenant, limits, 'open') : account.restore(tenant, limits)
        await connection.query(`${open}; ${grantDatabase(name, family)}`)
      })
    },
    async reset(name, origin) {
      assertTenantName(name)
      await exclusively(name, async () => {
        await assertAccount(connection, family, name)
        if (origin.template !== undefined) await assertCopyable({ connection, family }, origin.template)
        await connection.tenants.query(account.require(name, 'blocked'))
        await removeMarked(name)
        await build(name, origin)
        await connection.tenants.query(`${grantDatabase(name, family)}; ${account.require(name, 'open')}`)
      })
    },
    async drop(name, owner) {
      assertTenantName(name)
      await exclusively(name, () => discard(name, owner))
    },
    async removeLeftover(name) {
      const discarded = discardedBy(name)?.name
      if (discarded !== undefined)
        await exclusively(discarded, async () => {
          if (await tryRemove(discarded)) await dropDatabase(name)
        })
      else if (kindOf(name) === 'request') await connection.tenants.query(`DROP DATABASE IF EXISTS ${quoteName(name)}`)
      else await exclusively(markedBy(name), () => removeMarked(markedBy(name)))
    },
  }
}
