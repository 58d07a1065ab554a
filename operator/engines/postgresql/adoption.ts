import { type EngineAdmin, EngineCode, LoginState } from '../engine.ts'
import { MooringError } from '../../../shared/errors.ts'
import { assertTenantName, kindOf, readEntries } from './catalog.ts'
import { type Connection, quoteName } from './connection.ts'
import { endSessions } from './sessions/ended-sessions.ts'
import { rename } from './pool.ts'

/**
 * Returns the adoption of a restored server's tenant. The login of the former name is blocked first, so that no session of it delays the
 * renaming, which is one transaction. A repetition finds the new name and does nothing.
 */
export function createAdoption(connection: Connection): EngineAdmin['adopt'] {
  return async function adopt(name) {
    assertTenantName(name)
    const tenants = (await readEntries(connection)).filter((entry) => kindOf(entry.name) === 'tenant')
    if (tenants.some((entry) => entry.name === name)) return
    const [former, other] = tenants
    if (!former) return
    if (other)
      throw new MooringError(EngineCode.failed, `the restored server has several databases: ${former.name}, ${other.name}`)
    if (!former.database || former.login === LoginState.absent) {
      throw new MooringError(EngineCode.failed, `the restored server has only a part of the database ${former.name}`)
    }
    await connection.tenants.query(`ALTER ROLE ${quoteName(former.name)} NOLOGIN`)
    await endSessions(connection.tenants, former.name)
    await connection.tenants.query(rename(former.name, name))
  }
}
