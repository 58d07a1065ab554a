import type { EngineAdmin } from '../engine.ts'
import { EXPORTER_CONNECTIONS, EXPORTER_SOURCE, EXPORTER_USER } from '../exporter.ts'
import { hasAccessProcedure, VERIFY } from './access.ts'
import { identified } from './accounts.ts'
import type { MysqlFamily } from './catalog.ts'
import type { Connection } from './connection.ts'

const ACCOUNT = `'${EXPORTER_USER}'@'${EXPORTER_SOURCE}'`

/**
 * Creates the function that creates, changes and drops the exporter's account. PROCESS shows sessions with their statements, which no metric
 * contains. SELECT is confined to performance_schema, which the server does not fill. Each session of a restricted server calls the procedure
 * of access.ts at its start, so the account may execute it.
 */
export function createExporterLogin({ tenants }: Pick<Connection, 'tenants'>, family: MysqlFamily): EngineAdmin['monitor'] {
  return async function monitor(password) {
    if (password === undefined) {
      await tenants.query(`DROP USER IF EXISTS ${ACCOUNT}`)
      return
    }
    const login = `${ACCOUNT} ${identified(family, password)}`
    await tenants.query(`CREATE USER IF NOT EXISTS ${login}`)
    await tenants.query(`ALTER USER ${login} REQUIRE NONE WITH MAX_USER_CONNECTIONS ${EXPORTER_CONNECTIONS}`)
    await tenants.query(`GRANT PROCESS, REPLICATION CLIENT ON *.* TO ${ACCOUNT}`)
    await tenants.query(`GRANT SELECT ON performance_schema.* TO ${ACCOUNT}`)
    if (await hasAccessProcedure(tenants)) await tenants.query(`GRANT EXECUTE ON PROCEDURE ${VERIFY} TO ${ACCOUNT}`)
  }
}
