import type { EngineAdmin } from '../engine.ts'
import { EXPORTER_CONNECTIONS, EXPORTER_USER } from '../exporter.ts'
import type { Scram } from '../scram.ts'
import { type Connection, quoteName } from './connection.ts'
import { endSessions } from './sessions/ended-sessions.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import { passwordStatement } from './password.ts'

interface Deps {
  readonly connection: Pick<Connection, 'tenants'>
  readonly scram: Scram
}

const role = quoteName(EXPORTER_USER)

/** Statements that can be repeated. The role pg_monitor reads statistics and settings, and no data of tenants. */
const GRANTS = `GRANT CONNECT ON DATABASE postgres TO ${role}; GRANT pg_monitor TO ${role}`

/** Creates the function that creates, changes and drops the exporter's login. It connects only to the maintenance database (`postgresqlHba`). */
export function createExporterLogin({ connection: { tenants }, scram }: Deps): EngineAdmin['monitor'] {
  return async function monitor(password) {
    const [found] = await tenants.query<{ stored: string | null }>(
      'SELECT rolpassword AS stored FROM pg_authid WHERE rolname = $1',
      [EXPORTER_USER],
    )
    if (password === undefined) {
      if (!found) return
      // A session outlives its role, so that all are ended first.
      await tenants.query(`ALTER ROLE ${role} NOLOGIN PASSWORD NULL`)
      await endSessions(tenants, EXPORTER_USER)
      await tenants.query(`REVOKE CONNECT ON DATABASE postgres FROM ${role}; REVOKE pg_monitor FROM ${role}`)
      try {
        await tenants.query(`DROP ROLE ${role}`)
      } catch (error) {
        // A tenant may grant any role privileges on its own objects, at any time. The role can do nothing any more.
        if (sqlStateOf(error) !== SqlState.dependentObjects) throw error
      }
      return
    }
    const create = found ? '' : `CREATE ROLE ${role}; `
    await tenants.query(`${create}ALTER ROLE ${role} LOGIN CONNECTION LIMIT ${EXPORTER_CONNECTIONS}; ${GRANTS}`)
    if (await scram.matches(password, found?.stored ?? '')) return
    await tenants.query(passwordStatement(EXPORTER_USER, await scram.verifier(password)))
  }
}
