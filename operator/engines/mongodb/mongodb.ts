import type { AdminTarget, Engine, EngineAdmin } from '../engine.ts'
import { verifyByCatalog } from '../access.ts'
import { createAccess } from './access.ts'
import { createScram, type Scram } from '../scram.ts'
import { withoutPostgresqlOnly } from '../postgresql-only.ts'
import { assertTenantName, readCatalog, readSizes, readTenant } from './catalog.ts'
import { addressOf, connect, type Connection, TIMEOUTS } from './connection.ts'
import { withEngineErrors as safely } from './errors.ts'
import { createExporterLogin } from './exporter.ts'
import { createLeftovers } from './leftovers.ts'
import { createLifecycle } from './lifecycle.ts'
import { createVerifier } from './login.ts'
import { measure } from './measure.ts'
import { createMemoryWatch } from './memory.ts'
import { endFormerWork } from './sessions.ts'
import { harden, SCRAM_ITERATIONS } from './settings.ts'
import { absent, changeUser, createPasswords, renewPrivileges } from './users.ts'
import { createWatchdog } from './watchdog.ts'

/** Creates the administration of a MongoDB 5.0, 6.0 or 7.0 server. Takes ownership of `connection`. */
export function mongodbAdmin(
  target: AdminTarget,
  connection: Connection = connect(target),
  scram: Scram = createScram(SCRAM_ITERATIONS),
): EngineAdmin {
  const verifier = createVerifier({ target, timeouts: TIMEOUTS, scram })
  const access = createAccess({ connection, target })
  const lifecycle = createLifecycle({ connection, scram, expectLogin: verifier.expect, clients: access.clients })
  const { claim, reset, drop } = lifecycle
  const passwords = createPasswords({ connection, scram })
  const { tidy, discarded } = createLeftovers({ connection, lifecycle })
  const memory = createMemoryWatch(connection)
  const enforce = createWatchdog({ connection, admin: target.user, waiting: lifecycle.waiting })
  const find: EngineAdmin['find'] = async (name) => {
    const { database, login } = await readTenant(connection, name)
    return { database, login }
  }

  return {
    version: safely(async () => {
      const { version } = (await connection.command('admin', { buildInfo: 1 })) as { version: string }
      return version
    }),
    harden: safely(async () => {
      await harden(connection)
      await renewPrivileges(connection)
      await memory.settle()
    }),
    catalog: safely(() => readCatalog(connection)),
    find: safely(find),
    claim: safely(claim),
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
      if (!(await changeUser(connection, name, { disabled: false }))) throw absent(name)
    }),
    disableLogin: safely(async (name) => {
      assertTenantName(name)
      if (!(await changeUser(connection, name, { disabled: true, logOut: true }))) throw absent(name)
      await endFormerWork(connection, name)
    }),
    reset: safely(reset),
    drop: safely(drop),
    admit: safely(access.admit),
    tidy: safely(tidy),
    ...withoutPostgresqlOnly('MongoDB has no extensions'),
    discarded: safely(discarded),
    enforce: safely(async (bounds) => {
      const ended = memory.arm()
      const { suspended = [], ...enforced } = await enforce(bounds)
      return { ...enforced, ...(ended.length + suspended.length > 0 && { suspended: [...ended, ...suspended] }) }
    }),
    sizes: safely((which) => readSizes(connection, which)),
    monitor: safely(createExporterLogin({ connection, scram })),
    measure: safely((name) => measure(connection, name)),
    async [Symbol.asyncDispose]() {
      memory[Symbol.dispose]()
      verifier[Symbol.dispose]()
      await connection[Symbol.asyncDispose]()
    },
  }
}

const scram = createScram(SCRAM_ITERATIONS)

export const mongodb: Engine = {
  family: 'mongodb',
  uri({ host, port, name, password, caFile }) {
    const address = addressOf({ host, port }).replace('mongodb://', `mongodb://${name}:${encodeURIComponent(password)}@`)
    // By default a driver opens up to 100 connections for each client (docs/isolation.md, "MongoDB").
    const query = new URLSearchParams({ authSource: name, directConnection: 'true', maxPoolSize: '10' })
    if (caFile !== undefined) {
      query.set('tls', 'true')
      query.set('tlsCAFile', caFile)
    }
    return `${address}${name}?${query.toString().replaceAll('+', '%20')}`
  },
  drawPassword: () => scram.draw(),
  admin: (target) => mongodbAdmin(target, connect(target), scram),
}
