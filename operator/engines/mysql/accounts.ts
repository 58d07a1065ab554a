import mysql, { type ConnectionOptions } from 'mysql2/promise'
import { MooringError } from '../../../shared/errors.ts'
import { type AdminTarget, EngineCode, type Limits, type Tenant } from '../engine.ts'
import { accountOf, kindOf, type MysqlFamily, quoteName, readAccounts } from './catalog.ts'
import { type Connection, dialling, diallingAdmin, type Session, type Timeouts } from './connection.ts'
import { Errno, errnoOf, RIGHT_PASSWORD } from './errors.ts'
import { endSessions } from './sessions.ts'
import { nativeHash } from './settings.ts'

/** All privileges on a database except GRANT OPTION, which would let a tenant give other tenants access (docs/isolation.md). */
const PRIVILEGES = [
  ...['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'CREATE', 'DROP', 'REFERENCES', 'INDEX', 'ALTER', 'CREATE TEMPORARY TABLES'],
  ...['LOCK TABLES', 'CREATE VIEW', 'SHOW VIEW', 'CREATE ROUTINE', 'ALTER ROUTINE', 'EXECUTE', 'TRIGGER', 'EVENT'],
]
/** MariaDB's own privileges. */
const MARIADB_PRIVILEGES = ['DELETE HISTORY']

/** Returns the GRANT of a tenant's privileges. Names have no underscore, which would be a wildcard in the name of the database. */
export function grantDatabase(name: string, family: MysqlFamily): string {
  const privileges = family === 'mariadb' ? [...PRIVILEGES, ...MARIADB_PRIVILEGES] : PRIVILEGES
  return `GRANT ${privileges.join(', ')} ON ${quoteName(name)}.* TO ${accountOf(name)}`
}

/** Query for the accounts whose grant is that of an older version: all of them lacked EVENT. */
const FORMER_GRANTS = `SELECT User AS name FROM mysql.db WHERE Host = '%' AND User = Db AND Event_priv = 'N'`

/** Gives the accounts of an older version of Mooring the privileges of {@link grantDatabase}. */
export async function renewGrants(session: Session, family: MysqlFamily): Promise<void> {
  const former = await session.query<{ name: string }>(FORMER_GRANTS)
  for (const { name } of former.filter((account) => kindOf(account.name) === 'tenant'))
    await session.query(grantDatabase(name, family))
}

/**
 * Certificate requirement of an account. `blocked` is a requirement that no client certificate meets, so the server rejects every login. It
 * lasts for one step; ACCOUNT LOCK is the state of a disabled login. A tenant can change neither. After a crash, logins stay blocked until
 * the step is repeated.
 */
const REQUIRE = { blocked: `REQUIRE SUBJECT 'blocked'`, open: 'REQUIRE NONE' } as const
type Logins = keyof typeof REQUIRE

/**
 * Returns the part of a statement that sets a password: in the form that the server stores, so that none of its logs can have the password.
 * Clients prove to know such a password without TLS and without RSA, which the default of MySQL 8.0 would require of them.
 */
export const identified = (family: MysqlFamily, password: string): string =>
  family === 'mariadb'
    ? `IDENTIFIED VIA mysql_native_password USING '${nativeHash(password)}'`
    : `IDENTIFIED WITH mysql_native_password AS '${nativeHash(password)}'`

/** Returns the statements about accounts. */
export const accountStatements = (family: MysqlFamily) => ({
  create: ({ name, password }: Tenant, { connections }: Limits, logins: Logins) =>
    `CREATE USER ${accountOf(name)} ${identified(family, password)} ${REQUIRE[logins]} ` +
    `WITH MAX_USER_CONNECTIONS ${connections}`,
  restore: ({ name, password }: Tenant, { connections }: Limits) =>
    `ALTER USER ${accountOf(name)} ${identified(family, password)} REQUIRE NONE ` +
    `WITH MAX_USER_CONNECTIONS ${connections} ACCOUNT UNLOCK`,
  setPassword: ({ name, password }: Tenant, logins: Logins) =>
    `ALTER USER ${accountOf(name)} ${identified(family, password)} ${REQUIRE[logins]}`,
  require: (name: string, logins: Logins) => `ALTER USER ${accountOf(name)} ${REQUIRE[logins]}`,
  lock: (name: string) => `ALTER USER ${accountOf(name)} ACCOUNT LOCK`,
  unlock: (name: string) => `ALTER USER ${accountOf(name)} ACCOUNT UNLOCK`,
  drop: (name: string) => `DROP USER IF EXISTS ${accountOf(name)}`,
})

/** Errors of a login that cannot succeed: wrong account or password, locked account, missing database or privilege. */
const REJECTED: readonly unknown[] = [
  ...[Errno.loginDenied, Errno.databaseDenied, Errno.unknownDatabase],
  ...[Errno.accountLockedByMysql, Errno.accountLockedByMariadb],
]

interface Deps {
  readonly target: AdminTarget
  readonly family: MysqlFamily
  readonly connection: Connection
  readonly timeouts: Timeouts
  /** Names of tenants whose databases this process is building. */
  readonly inFlight: ReadonlySet<string>
}

/** Passwords of tenants' accounts on one server. */
export interface Passwords {
  /** Logs in as the tenant does, over the server's address. @throws `login_refused` */
  readonly verify: (tenant: Tenant) => Promise<void>
  /**
   * Replaces the password and ends every session that was opened with another one. Logins are blocked meanwhile: a
   * session with the old password could set a third password and log in with that.
   */
  readonly rotate: (tenant: Tenant) => Promise<void>
  /** Returns the names of the tenants whose account has another password than the given one, or rejects logins after a crash. */
  readonly findChanged: (tenants: readonly Tenant[]) => Promise<readonly string[]>
}

export function createPasswords({ target, family, connection, timeouts, inFlight }: Deps): Passwords {
  const account = accountStatements(family)
  /** Cache of matching passwords and stored forms by tenant, because each comparison is a login. */
  let known = new Map<string, { readonly password: string; readonly proof: string }>()

  /**
   * Logs in as the tenant does. While others hold all connections of the server, logs in at the administrator's own address. MySQL rejects a
   * tenant there, but only after it has accepted the password.
   */
  async function logIn({ name, password }: Tenant, database?: string): Promise<void> {
    // The client certificate proves to be the administrator.
    const of = { ...target, client: undefined }
    const own = diallingAdmin(of, timeouts)
    const dial = async (at: ConnectionOptions) => {
      const login = { user: name, password, ...(database !== undefined && { database }) }
      const client = await mysql.createConnection({ ...at, ...login })
      // A clean disconnect would cost one more round trip.
      client.destroy()
    }
    try {
      await dial(dialling(of, timeouts))
    } catch (error) {
      if (!own || errnoOf(error) !== Errno.tooManyConnections) throw error
      await dial(own).catch((rejection: unknown) => {
        if (errnoOf(rejection) !== Errno.privilegeDenied) throw rejection
      })
    }
  }

  async function isRight(tenant: Tenant, proof: string): Promise<boolean> {
    const before = known.get(tenant.name)
    if (before?.password === tenant.password && before.proof === proof) return true
    try {
      await logIn(tenant)
      return true
    } catch (error) {
      if (RIGHT_PASSWORD.includes(errnoOf(error))) return true
      if (errnoOf(error) === Errno.loginDenied) return false
      throw error
    }
  }

  return {
    async verify(tenant) {
      try {
        await logIn(tenant, tenant.name)
      } catch (error) {
        if (!REJECTED.includes(errnoOf(error))) throw error
        throw new MooringError(EngineCode.loginRefused, `the login of ${tenant.name} does not work`, { cause: error })
      }
    },
    async rotate(tenant) {
      await assertAccount(connection, family, tenant.name)
      await connection.tenants.query(account.setPassword(tenant, 'blocked'))
      await endSessions(connection.tenants, tenant.name)
      await connection.tenants.query(account.setPassword(tenant, 'open'))
    },
    async findChanged(tenants) {
      const changing = new Set(inFlight)
      const accounts = new Map((await readAccounts(connection.watch, family)).map((found) => [found.name, found]))
      const right: typeof known = new Map()
      const changed: string[] = []
      for (const tenant of tenants) {
        const found = accounts.get(tenant.name)
        // The reconciler finds missing accounts in the catalog.
        if (!found) continue
        if (!found.blocked && (await isRight(tenant, found.proof))) right.set(tenant.name, { ...tenant, proof: found.proof })
        // A reset blocks the login until it ends.
        else if (!changing.has(tenant.name) && !inFlight.has(tenant.name)) changed.push(tenant.name)
      }
      known = right
      return changed
    },
  }
}

/** @throws MooringError `engine_failed` when the server has no account of this name */
export async function assertAccount(session: Session, family: MysqlFamily, name: string): Promise<void> {
  const found = await readAccounts(session, family, name)
  if (found.length === 0) throw new MooringError(EngineCode.failed, `there is no login ${name} on this server`)
}
