import { MooringError } from '../../../shared/errors.ts'
import { type EngineAdmin, EngineCode, LoginState, type Origin } from '../engine.ts'
import type { Scram } from '../scram.ts'
import type { Access } from './access.ts'
import { assertTenantName, hasCollections, readTenant } from './catalog.ts'
import type { Connection } from './connection.ts'
import { assertCopyable, copyDatabase } from './copy.ts'
import { endWork } from './sessions.ts'
import { absent, changeUser, isGranted, readUser, removeUser, setPrivileges, userDocument, writeUser } from './users.ts'

interface Deps {
  readonly connection: Connection
  readonly scram: Scram
  /** Called at the beginning of a claim, because the tenant's login is verified next. */
  readonly expectLogin: (name: string) => void
  /** Sources from which new logins are allowed. */
  readonly clients: Access['clients']
}

const ATTEMPTS = 5

/**
 * Creates claim, reset and drop. The role of a tenant has privileges only while its database is complete, so that the server shows after a
 * crash which steps have to be repeated:
 *
 *     claim: login → (copy) → privileges    reset: no privileges → drop → (copy) → privileges    drop: no login → drop → role → login
 */
export function createLifecycle({
  connection,
  scram,
  expectLogin,
  clients,
}: Deps): Pick<EngineAdmin, 'claim' | 'reset' | 'drop'> {
  /** Drops the collections of a database whose tenant has no privileges, until it has no collections. */
  async function empty(name: string, attempts = ATTEMPTS): Promise<void> {
    await endWork(connection, name)
    await connection.long.command(name, { dropDatabase: 1 })
    if (!(await hasCollections(connection, name))) return
    if (attempts === 1) throw new MooringError(EngineCode.failed, `the collections of ${name} are still in the catalog`)
    await empty(name, attempts - 1)
  }

  async function replace(name: string, { template }: Origin): Promise<void> {
    if (template !== undefined) await assertCopyable(connection, template)
    await setPrivileges(connection, name, 'none')
    await empty(name)
    if (template !== undefined) await copyDatabase(connection, template, name)
    await setPrivileges(connection, name, 'all')
  }

  /** Whether the copy of a template for the tenant remains to be done. */
  async function lacksCopy(name: string): Promise<boolean> {
    const { login } = await readTenant(connection, name)
    if (login === LoginState.absent) return !(await hasCollections(connection, name))
    return !(await isGranted(connection, name))
  }

  return {
    async claim({ name, password }, limits, origin) {
      assertTenantName(name)
      expectLogin(name)
      const copies = origin.template !== undefined && (await lacksCopy(name))
      if (copies) await assertCopyable(connection, origin.template ?? '')
      const former = await readUser(connection, name)
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
    async drop(name) {
      assertTenantName(name)
      await Promise.all([setPrivileges(connection, name, 'none'), changeUser(connection, name, { disabled: true, logOut: true })])
      await empty(name)
      await removeUser(connection, name)
      const left = await readTenant(connection, name)
      if (left.database || left.login !== LoginState.absent)
        throw new MooringError(EngineCode.failed, `${name} is still in the catalog`)
    },
  }
}
