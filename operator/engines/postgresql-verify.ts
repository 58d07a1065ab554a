import pg from 'pg'
import { MooringError } from '../../crds/errors.ts'
import type { AdminTarget, EngineAdmin } from './engine.ts'
import { EngineCode } from './engine.ts'
import { dialling, ignore, type Timeouts } from './postgresql-connection.ts'
import { SqlState, sqlStateOf } from './postgresql-errors.ts'

/** Role, password, database or right to connect is not there; or the database is closed. */
const REFUSED: readonly unknown[] = [
  SqlState.invalidPassword,
  SqlState.invalidAuthorization,
  SqlState.undefinedDatabase,
  SqlState.insufficientPrivilege,
  SqlState.notInPrerequisiteState,
]

/** Logs in as a tenant does, by the address of the server, and runs a statement. */
export function verifying(target: AdminTarget, timeouts: Timeouts): EngineAdmin['verify'] {
  return async function verify({ name, password }) {
    const client = new pg.Client({
      ...dialling(target, timeouts),
      user: name,
      database: name,
      password,
      query_timeout: timeouts.connectMs,
    })
    client.on('error', ignore)
    try {
      await client.connect()
      await client.query('SELECT 1')
    } catch (error) {
      if (!REFUSED.includes(sqlStateOf(error))) throw error
      throw new MooringError(EngineCode.loginRefused, `the login of ${name} does not work`, { cause: error })
    } finally {
      // Nobody waits for the goodbye: it takes a sixth of the time.
      void client.end().catch(ignore)
    }
  }
}
