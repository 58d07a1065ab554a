import type { AdminTarget, Engine, EngineAdmin } from '../engine.ts'
import { verifyByCatalog } from '../access.ts'
import { createAccess } from './access.ts'
import { createBuilder } from './build.ts'
import { readDiscarded, readSizes, readTenant, assertTenantName } from './catalog.ts'
import { createAdoption } from './adoption.ts'
import { createClaim, createReplace } from './claim.ts'
import { closeLogin, Mark, unmarking } from './closing.ts'
import { connect, type Connection, quoteName, TIMEOUTS } from './connection.ts'
import { createDiscard } from './drop.ts'
import { END_WITHIN_MS, tryEndSessions } from './sessions/ended-sessions.ts'
import { withEngineErrors as safely } from './errors.ts'
import { createExporterLogin } from './exporter.ts'
import { createExtensions, listExtensions } from './extensions.ts'
import { measure } from './measure.ts'
import { harden } from './privileges.ts'
import { createPasswords } from './password.ts'
import { createRemovals } from './removals.ts'
import { createWarmPool } from './pool.ts'
import { createScram, type Scram } from '../scram.ts'
import { createVerifier } from './login.ts'
import { createWatchdog, guardTransactionIds } from './watchdog.ts'

/** Creates the administration of a PostgreSQL 14 or 15 server. Takes ownership of `connection`. */
export function postgresqlAdmin(
  target: AdminTarget,
  connection: Connection = connect(target),
  scram: Scram = createScram(),
): EngineAdmin {
  const { extensionCalls: calls = '/v1/instances/{id}/extensions' } = target
  const builder = createBuilder(connection, { calls })
  const removals = createRemovals({ connection, inFlight: builder.inFlight })
  const discard = createDiscard({ connection, removals })
  const replace = createReplace({ connection, builder, removals })
  const pool = createWarmPool({ connection, builder, discard })
  const verifier = createVerifier({ target, timeouts: TIMEOUTS, scram })
  const extensions = createExtensions({ connection, calls })
  const passwords = createPasswords({ connection, scram })
  const access = createAccess({ connection, target })
  const watchdog = createWatchdog(connection)
  const find: EngineAdmin['find'] = (name) => readTenant(connection, name)

  return {
    version: safely(async () => {
      const [row] = await connection.query<{ server_version: string }>('SHOW server_version')
      // Distributions append their package version: "15.4 (Debian 15.4-1)".
      return row?.server_version.split(' ')[0] ?? ''
    }),
    harden: safely(() => harden(connection, { calls })),
    catalog: safely(() => pool.catalog()),
    find: safely(find),
    claim: safely(createClaim({ connection, builder, pool, replace, scram, expectLogin: verifier.expect })),
    adopt: safely(createAdoption(connection)),
    verify: safely(async (tenant) => {
      if (await access.includesOperator()) await verifier.verify(tenant)
      else await verifyByCatalog({ find, findChangedPasswords: (tenants) => passwords.findChanged(tenants) }, tenant)
    }),
    setPassword: safely(async (tenant) => {
      assertTenantName(tenant.name)
      await passwords.rotate(tenant)
    }),
    findChangedPasswords: safely((tenants) => passwords.findChanged(tenants)),
    enableLogin: safely(async (name) => {
      assertTenantName(name)
      await connection.tenants.query(`ALTER ROLE ${quoteName(name)} LOGIN; ${unmarking(name)}`)
    }),
    disableLogin: safely(async (name) => {
      assertTenantName(name)
      await closeLogin(connection, name, { statements: `ALTER ROLE ${quoteName(name)} NOLOGIN`, mark: Mark.disabled })
      await tryEndSessions(connection, name, END_WITHIN_MS.attempted)
    }),
    reset: safely(async (name, origin, owner) => {
      assertTenantName(name)
      await replace(name, origin, owner)
    }),
    drop: safely(async (name, owner) => {
      assertTenantName(name)
      await discard(name, owner)
    }),
    discarded: safely(() => readDiscarded(connection)),
    admit: safely(access.admit),
    endExcluded: safely(access.endExcluded),
    tidy: safely((size) => pool.tidy(size)),
    extensions: safely(() => listExtensions(connection)),
    installExtensions: safely(async (name, wanted) => {
      assertTenantName(name)
      return extensions.install(name, wanted)
    }),
    findChangedExtensions: safely((recorded) => extensions.findChanged(recorded)),
    enforce: safely(watchdog),
    guardTransactionIds: safely(() => guardTransactionIds(connection.watch)),
    sizes: safely((which) => readSizes(connection.watch, which)),
    monitor: safely(createExporterLogin({ connection, scram })),
    measure: safely((name) => measure(connection.watch, name)),
    async [Symbol.asyncDispose]() {
      verifier[Symbol.dispose]()
      await connection[Symbol.asyncDispose]()
    },
  }
}

const scram = createScram()

export const postgresql: Engine = {
  family: 'postgresql',
  uri({ host, port, name, password, caFile }) {
    const at = host.includes(':') ? `[${host}]` : host
    return `postgresql://${name}:${encodeURIComponent(password)}@${at}:${port}/${name}${caFile === undefined ? '' : `?sslmode=verify-full&sslrootcert=${encodeURIComponent(caFile)}`}`
  },
  drawPassword: () => scram.draw(),
  admin: (target) => postgresqlAdmin(target, connect(target), scram),
}
