import { MooringError } from '../../../shared/errors.ts'
import { type EngineAdmin, EngineCode, LoginState, type Origin } from '../engine.ts'
import type { Scram } from '../scram.ts'
import type { Access } from './access.ts'
import { assertTenantName, hasCollections, readTenant } from './catalog.ts'
import type { Connection } from './connection.ts'
import { assertCopyable, copyDatabase } from './copy.ts'
import { ServerCode, serverCodeOf } from './errors.ts'
import { endWork } from './sessions.ts'
import { listDiscarded, markDiscarded, removeUser, unmark } from './discarded-databases.ts'
import { absent, changeUser, isGranted, readUser, setPrivileges, userDocument, writeUser } from './users.ts'

interface Deps {
  readonly connection: Connection
  readonly scram: Scram
  /** Called at the beginning of a claim, because the tenant's login is verified next. */
  readonly expectLogin: (name: string) => void
  /** Sources from which new logins are allowed. */
  readonly clients: Access['clients']
}

const ATTEMPTS = 5
/** Maximum time for which one attempt waits for locks. It keeps its connection meanwhile, and there are few. */
const DROP_MS = { usual: 4_000, besideKilled: 1_000 }

/** Creation, replacement and removal of tenants' databases and logins. */
export interface Lifecycle extends Pick<EngineAdmin, 'claim' | 'reset' | 'drop'> {
  /** Names of the tenants whose reset waits for an operation that was killed and goes on. */
  readonly waiting: ReadonlySet<string>
  /** Removes a discarded database, then its mark. Does nothing while an operation keeps the database from being removed. */
  removeDiscarded(name: string): Promise<void>
}

/**
 * Creates claim, reset and drop. The role of a tenant has privileges only while its database is complete, so that the server shows after a
 * crash which steps have to be repeated:
 *
 *     claim: login → (copy) → privileges    reset: no privileges → drop → (copy) → privileges
 *     drop: no login → drop, or the mark of a discarded database → role → login
 */
export function createLifecycle({ connection, scram, expectLogin, clients }: Deps): Lifecycle {
  const waiting = new Set<string>()

  /**
   * Drops the collections of a database whose tenant has no privileges, until it has no collections. @returns false while an operation goes on
   * that keeps it from being dropped: an update does, a read does not
   */
  async function tryEmpty(name: string, attempts = ATTEMPTS): Promise<boolean> {
    const ending = await endWork(connection, name)
    if (ending === 'running' || !(await tryDrop(name, ending))) return false
    if (!(await hasCollections(connection, name))) return true
    if (attempts === 1) throw new MooringError(EngineCode.failed, `the collections of ${name} are still in the catalog`)
    return tryEmpty(name, attempts - 1)
  }

  async function tryDrop(name: string, ending: 'ended' | 'killed'): Promise<boolean> {
    try {
      // The driver's option is not sent with this command.
      const maxTimeMS = ending === 'ended' ? DROP_MS.usual : DROP_MS.besideKilled
      await connection.long.command(name, { dropDatabase: 1, maxTimeMS })
      return true
    } catch (error) {
      if (ending === 'ended' || serverCodeOf(error) !== ServerCode.timeLimitExceeded) throw error
      return false
    }
  }

  /** @throws MooringError `engine_unavailable` while an operation keeps the former database: the watchdog has the server restarted then */
  async function replace(name: string, { template }: Origin): Promise<void> {
    if (template !== undefined) await assertCopyable(connection, template)
    await setPrivileges(connection, name, 'none')
    if (!(await tryEmpty(name))) {
      waiting.add(name)
      throw new MooringError(EngineCode.unavailable, `an operation that nothing ends keeps the database ${name}`)
    }
    waiting.delete(name)
    if (template !== undefined) await copyDatabase(connection, template, name)
    await setPrivileges(connection, name, 'all')
  }

  /** Removes the database, or marks it as discarded: it keeps its name, which no tenant gets again. The login is barred meanwhile. */
  async function removeDatabase(name: string, owner = ''): Promise<void> {
    await Promise.all([setPrivileges(connection, name, 'none'), changeUser(connection, name, { disabled: true, logOut: true })])
    if (!(await tryEmpty(name))) await markDiscarded(connection, { name, owner })
  }

  /** Whether the copy of a template for the tenant remains to be done. */
  async function lacksCopy(name: string): Promise<boolean> {
    const { login } = await readTenant(connection, name)
    if (login === LoginState.absent) return !(await hasCollections(connection, name))
    return !(await isGranted(connection, name))
  }

  return {
    waiting,
    async claim({ name, password }, limits, origin) {
      assertTenantName(name)
      expectLogin(name)
      const copies = origin.template !== undefined && (await lacksCopy(name))
      if (copies) await assertCopyable(connection, origin.template ?? '')
      const [former, discarded] = await Promise.all([readUser(connection, name), listDiscarded(connection, name)])
      if (discarded.length > 0) throw new MooringError(EngineCode.failed, `the database ${name} is discarded`)
      const ranges = clients(former?.customData?.clients)
      const user = userDocument({ name, credentials: await scram.credentials(password), limits, clients: ranges })
      if (copies) {
        await writeUser(connection, user)
        await replace(name, origin)
      } else {
        // In any order: a role without login, or a login without role, is completed by the repeated claim.
        await Promise.all([writeUser(connection, user), setPrivileges(connection, name, 'all')])
      }
    },
    async reset(name, origin) {
      assertTenantName(name)
      if (!(await readUser(connection, name))) throw absent(name)
      await replace(name, origin)
    },
    async drop(name, owner) {
      assertTenantName(name)
      waiting.delete(name)
      if (!(await readTenant(connection, name)).isDiscarded) await removeDatabase(name, owner)
      await removeUser(connection, name)
      const left = await readTenant(connection, name)
      if (left.database || left.login !== LoginState.absent)
        throw new MooringError(EngineCode.failed, `${name} is still in the catalog`)
    },
    async removeDiscarded(name) {
      if (await tryEmpty(name)) await unmark(connection, name)
    },
  }
}
