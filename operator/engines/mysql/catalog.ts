import { MooringError } from '../../../shared/errors.ts'
import { type Catalog, EngineCode, LoginState, type TenantState } from '../engine.ts'
import type { Session } from './connection.ts'

export type MysqlFamily = 'mysql' | 'mariadb'

/** Kind of a database or account, as encoded in its name. Tenants' names contain no underscore, so that kinds cannot overlap. */
export type NameKind = 'tenant' | 'mark' | 'gone' | 'request' | 'foreign'

/** Names of the server's own databases and accounts, and words that MySQL or MariaDB treat specially as the name of an account. */
const RESERVED: ReadonlySet<string> = new Set(['mysql', 'sys', 'test', 'root', 'mooring', 'public', 'none'])
const MARK = 'making_'
const REQUEST = 'stray_'
/** Name of the mark of a discarded database: its owner, if known, and its tenant. */
const GONE = /^gone_((?:[0-9a-f]{8})?)_(.*)$/s
const TENANT = /^[a-z][a-z0-9]{0,21}$/

const isTenant = (name: string): boolean => TENANT.test(name) && !RESERVED.has(name)

/** Returns the kind of a database or account; `foreign` for a name that Mooring did not assign. */
export function kindOf(name: string): NameKind {
  if (name.startsWith(MARK) && isTenant(markedBy(name))) return 'mark'
  if (discardedBy(name)) return 'gone'
  if (name.startsWith(REQUEST) && ['tenant', 'mark', 'gone'].includes(kindOf(requestedBy(name)))) return 'request'
  return isTenant(name) ? 'tenant' : 'foreign'
}

/** Returns the name of the empty database whose existence marks a tenant's database as incomplete. */
export const markOf = (tenant: string): string => `${MARK}${tenant}`

/** Returns the tenant whose database is incomplete, by the name of the mark. */
export const markedBy = (mark: string): string => mark.slice(MARK.length)

/** Returns the name of the empty database whose existence marks a tenant's database as discarded. `owner`: as for `EngineAdmin.drop`. */
export const goneMarkOf = (tenant: string, owner = ''): string => `gone_${owner}_${tenant}`

/** Returns the discarded database that a mark names; undefined for another name. */
export function discardedBy(mark: string): { readonly owner: string; readonly name: string } | undefined {
  const [, owner, name] = GONE.exec(mark) ?? []
  return owner !== undefined && name !== undefined && isTenant(name) ? { owner, name } : undefined
}

/** Returns the name of the request to remove the stray directory of `database`: an empty database (stray-directories.ts). */
export const requestFor = (database: string): string => `${REQUEST}${database}`

/** Returns the name of the database whose stray directory a request names. */
export const requestedBy = (request: string): string => request.slice(REQUEST.length)

/**
 * Rejects the names of the server's own databases and accounts.
 * @throws MooringError `engine_failed` when a tenant cannot have the name
 */
export function assertTenantName(name: string): void {
  if (kindOf(name) !== 'tenant') throw new MooringError(EngineCode.failed, `"${name}" is not the name of a tenant`)
}

/** Quotes an identifier (MySQL manual, "Schema Object Names"). */
export const quoteName = (name: string): string => `\`${name.replaceAll('`', '``')}\``

/** Account of a tenant, which may log in from any host. The name has no special characters. */
export const accountOf = (tenant: string): string => `'${tenant}'@'%'`

/**
 * Query for the accounts that may log in from any host. MariaDB's view mysql.user does not show whether an account is locked. `blocked`:
 * logins are rejected while a step is in progress (accounts.ts).
 */
const ACCOUNTS: Readonly<Record<MysqlFamily, string>> = {
  mysql: `SELECT User AS name, account_locked = 'Y' AS locked, ssl_type <> '' AS blocked, authentication_string AS proof
    FROM mysql.user WHERE Host = '%'`,
  mariadb: `SELECT User AS name, COALESCE(JSON_VALUE(Priv, '$.account_locked'), 0) IN ('true', '1') AS locked,
      COALESCE(JSON_VALUE(Priv, '$.ssl_type'), 0) <> 0 AS blocked, JSON_VALUE(Priv, '$.authentication_string') AS proof
    FROM mysql.global_priv WHERE Host = '%'`,
}

/** Account as the server stores it. */
export interface Account {
  readonly name: string
  readonly locked: 0 | 1
  readonly blocked: 0 | 1
  /** Stored form of the password. */
  readonly proof: string
}

/** Reads the accounts that may log in from any host: all, or one by its name. */
export async function readAccounts(session: Session, family: MysqlFamily, name?: string): Promise<readonly Account[]> {
  const accounts = ACCOUNTS[family]
  return name === undefined ? session.query<Account>(accounts) : session.query<Account>(`${accounts} AND User = ?`, [name])
}

const loginOf = (account: Pick<Account, 'locked'> | undefined): LoginState => {
  if (!account) return LoginState.absent
  return account.locked ? LoginState.disabled : LoginState.enabled
}

/** Database and account of one name. */
export interface Found extends TenantState {
  /** Whether the mark shows that the database is incomplete; it then counts as absent. */
  readonly isIncomplete: boolean
  /** Whether the mark shows that the database is discarded; it then counts as absent until it is removed. */
  readonly isDiscarded: boolean
}

/** Reads the database and the account of one name. */
export async function readTenant(session: Session, family: MysqlFamily, name: string): Promise<Found> {
  const [[account], databases] = await Promise.all([
    readAccounts(session, family, name),
    session.query<{ name: string }>(
      `SELECT SCHEMA_NAME AS name FROM information_schema.SCHEMATA
       WHERE SCHEMA_NAME IN (?, ?) OR (SCHEMA_NAME LIKE 'gone\\_%' AND SUBSTRING_INDEX(SCHEMA_NAME, '_', -1) = ?)`,
      [name, markOf(name), name],
    ),
  ])
  const isDiscarded = databases.some((database) => kindOf(database.name) === 'gone')
  const isIncomplete = !isDiscarded && databases.some((database) => database.name === markOf(name))
  const exists = databases.some((database) => database.name === name)
  return { database: exists && !isIncomplete && !isDiscarded, login: loginOf(account), isIncomplete, isDiscarded }
}

/** Reads all databases and accounts. `inFlight`: names of tenants whose databases this process is building. */
export async function readCatalog(session: Session, family: MysqlFamily, inFlight: ReadonlySet<string>): Promise<Catalog> {
  const [accounts, databases] = await Promise.all([
    readAccounts(session, family),
    session.query<{ name: string }>('SELECT SCHEMA_NAME AS name FROM information_schema.SCHEMATA'),
  ])
  return catalogOf({ accounts, databases: databases.map(({ name }) => name) }, inFlight)
}

interface Entries {
  readonly accounts: readonly Pick<Account, 'name' | 'locked'>[]
  readonly databases: readonly string[]
}

/** Classifies databases and accounts. Pure. */
export function catalogOf({ accounts, databases }: Entries, inFlight: ReadonlySet<string>): Catalog {
  const gone = databases.flatMap((mark) => {
    const name = discardedBy(mark)?.name
    return name === undefined ? [] : [{ mark, name }]
  })
  const discarded = new Set(gone.map(({ name }) => name))
  // The mark of a discarded database is removed with it.
  const marks = databases.filter((name) => kindOf(name) === 'mark' && !discarded.has(markedBy(name)))
  const incomplete = new Set(marks.map(markedBy))
  const complete = new Set(databases.filter((name) => !incomplete.has(name) && !discarded.has(name)))
  const logins = new Map(accounts.map((account) => [account.name, loginOf(account)]))
  const names = new Set([...complete, ...logins.keys()].filter((name) => kindOf(name) === 'tenant'))
  return {
    tenants: new Map(
      [...names].map((name) => [name, { database: complete.has(name), login: logins.get(name) ?? LoginState.absent }]),
    ),
    // A database is created within milliseconds, so none is prepared.
    spare: 0,
    leftovers: [
      ...marks.filter((mark) => !inFlight.has(markedBy(mark))),
      ...gone.filter(({ name }) => !inFlight.has(name)).map(({ mark }) => mark),
      ...databases.filter((name) => kindOf(name) === 'request'),
    ],
  }
}
