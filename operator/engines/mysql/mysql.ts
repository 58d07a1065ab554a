import { randomPassword } from '../../secret-data.ts'
import type { AdminTarget, Engine, EngineAdmin } from '../engine.ts'
import { withoutPostgresqlOnly } from '../postgresql-only.ts'
import { createAccess } from './access.ts'
import { accountStatements, assertAccount, createPasswords, renewGrants } from './accounts.ts'
import { assertTenantName, type MysqlFamily, readCatalog, readTenant } from './catalog.ts'
import { connect, type Connection, TIMEOUTS } from './connection.ts'
import { createDatabases } from './databases.ts'
import { withEngineErrors as safely } from './errors.ts'
import { createExporterLogin } from './exporter.ts'
import { createLeftovers } from './leftovers.ts'
import { createMeasure } from './sizes/measure.ts'
import { endSessions } from './sessions.ts'
import { harden } from './settings.ts'
import { createSizes } from './sizes/sizes.ts'
import { loadTimeZones } from './time-zones/time-zones.ts'
import { createWatchdog } from './watchdog.ts'

/** Creates the administration of a MySQL 5.7 or 8.0 server, or of a MariaDB 10 server. Takes ownership of `connection`. */
export function mysqlAdmin(
  target: AdminTarget,
  family: MysqlFamily,
  connection: Connection = connect(target, { family }),
): EngineAdmin {
  const account = accountStatements(family)
  const databases = createDatabases({ connection, family })
  const passwords = createPasswords({ target, family, connection, timeouts: TIMEOUTS, inFlight: databases.inFlight })
  const { tidy, discarded } = createLeftovers({ connection, family, databases })

  async function change(name: string, statement: (name: string) => string): Promise<void> {
    assertTenantName(name)
    await assertAccount(connection, family, name)
    await connection.tenants.query(statement(name))
  }

  return {
    version: safely(async () => {
      const [row] = await connection.query<{ version: string }>('SELECT VERSION() AS version')
      // MariaDB and distributions append words: "10.11.19-MariaDB-0+deb12u1".
      return row?.version.split('-')[0] ?? ''
    }),
    harden: safely(async () => {
      await harden(connection)
      await renewGrants(connection, family)
      await loadTimeZones(connection)
    }),
    catalog: safely(() => readCatalog(connection, family, databases.inFlight)),
    find: safely(async (name) => {
      const { database, login } = await readTenant(connection, family, name)
      return { database, login }
    }),
    claim: safely(databases.claim),
    verify: safely(passwords.verify),
    setPassword: safely(async (tenant) => {
      assertTenantName(tenant.name)
      await passwords.rotate(tenant)
    }),
    findChangedPasswords: safely(passwords.findChanged),
    enableLogin: safely((name) => change(name, account.unlock)),
    disableLogin: safely(async (name) => {
      await change(name, account.lock)
      await endSessions(connection.tenants, name)
    }),
    reset: safely(databases.reset),
    drop: safely(databases.drop),
    admit: safely(createAccess({ connection, target }).admit),
    tidy: safely(tidy),
    discarded: safely(discarded),
    ...withoutPostgresqlOnly('this engine has no extensions'),
    enforce: safely(createWatchdog(connection, family)),
    sizes: safely(createSizes(connection, family)),
    monitor: safely(createExporterLogin(connection, family)),
    measure: safely(createMeasure(connection, family)),
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  }
}

/** Returns the engine of a family. Connection strings of both have the scheme `mysql:`, since MariaDB has the same protocol. */
const engineOf = (family: MysqlFamily): Engine => ({
  family,
  uri({ host, port, name, password, caFile }) {
    const at = host.includes(':') ? `[${host}]` : host
    const tls = caFile === undefined ? '' : `?ssl-mode=VERIFY_IDENTITY&ssl-ca=${encodeURIComponent(caFile)}`
    return `mysql://${name}:${encodeURIComponent(password)}@${at}:${port}/${name}${tls}`
  },
  drawPassword: randomPassword,
  admin: (target) => mysqlAdmin(target, family),
})

export const mysql: Engine = engineOf('mysql')
export const mariadb: Engine = engineOf('mariadb')
