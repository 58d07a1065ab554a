import { randomBytes } from 'node:crypto'
import { type Catalog, type TenantState, LoginState, EngineCode } from '../engine.ts'
import { markOf, markOfName } from './closing.ts'
import type { Session } from './connection.ts'
import { MooringError } from '../../../shared/errors.ts'

/** State of a tenant. */
interface Found extends TenantState {
  /** Name that its database is to get, when it is discarded and its tenant keeps it from being renamed. */
  readonly discardedAs?: string | undefined
}

/** Database and role of one name; either may be missing. */
export interface Entry extends Found {
  readonly name: string
}

interface Row {
  readonly name: string
  readonly database: boolean
  readonly login: boolean | null
  readonly mark: string | null
}

const ALL = `
  SELECT coalesce(d.datname, r.rolname) AS name, d.datname IS NOT NULL AS database, r.rolcanlogin AS login, ${markOf('d.oid')} AS mark
  FROM (SELECT oid, datname FROM pg_database WHERE NOT datistemplate) d
  FULL JOIN (SELECT rolname, rolcanlogin FROM pg_roles WHERE NOT rolsuper AND rolname !~ '^pg_') r ON r.rolname = d.datname`

/** Reads all databases but templates, and all roles but superusers and predefined ones, in one round trip. */
export async function readEntries(session: Session): Promise<readonly Entry[]> {
  return (await session.query<Row>(ALL)).map(({ name, ...row }) => ({ name, ...foundIn(row) }))
}

/** Reads the database and role of one name, in one round trip. */
export async function readTenant(session: Session, name: string): Promise<Found> {
  const [row] = await session.query<Omit<Row, 'name'>>(
    `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1) AS database,
            (SELECT rolcanlogin FROM pg_roles WHERE rolname = $1) AS login, ${markOfName('$1')} AS mark`,
    [name],
  )
  return foundIn(row ?? { database: false, login: null, mark: null })
}

function foundIn({ database, login, mark }: Omit<Row, 'name'>): Found {
  const discardedAs = mark !== null && kindOf(mark) === 'trash' ? { discardedAs: mark } : {}
  return { database, login: loginOf(login), ...discardedAs }
}

function loginOf(canLogin: boolean | null): LoginState {
  if (canLogin === null) return LoginState.absent
  return canLogin ? LoginState.enabled : LoginState.disabled
}

/** Whether the entry is a complete spare. One transaction names its database and role, so an entry without one of them is a leftover. */
export function isSpare({ name, database, login }: Entry): boolean {
  return kindOf(name) === 'spare' && database && login !== LoginState.absent
}

/** Classifies the entries of the catalog. `inFlight`: names of databases that this process is building. Pure. */
export function catalogOf(entries: readonly Entry[], inFlight: ReadonlySet<string>): Catalog {
  const isDiscarded = ({ name, discardedAs }: Entry): boolean => kindOf(name) === 'trash' || discardedAs !== undefined
  const isPartial = (entry: Entry): boolean =>
    !isSpare(entry) && ['spare', 'making'].includes(kindOf(entry.name)) && !inFlight.has(entry.name)
  return {
    tenants: new Map(
      entries
        .filter((entry) => kindOf(entry.name) === 'tenant' && !isDiscarded(entry))
        .map(({ name, database, login }): [string, TenantState] => [name, { database, login }]),
    ),
    spare: entries.filter(isSpare).length,
    leftovers: entries.filter((entry) => isDiscarded(entry) || isPartial(entry)).map(({ name }) => name),
  }
}

/** Reads the owners in the names of the discarded databases (see {@link freshName}), and in the names that such a database is to get. */
export async function readDiscarded(session: Session): Promise<readonly string[]> {
  const rows = await session.query<{ owner: string }>(
    `SELECT substring(name FROM '^trash_([0-9a-f]{8})[0-9a-f]{8}$') AS owner
     FROM (SELECT CASE WHEN starts_with(datname::text, 'trash_') THEN datname::text ELSE ${markOf('oid')} END AS name FROM pg_database) d
     WHERE starts_with(name, 'trash_')`,
  )
  return rows.map(({ owner }) => owner)
}

/** SQL condition for databases with a session that was active within the last 30 s: other databases do not grow. */
const BUSY = `oid IN (SELECT datid FROM pg_stat_activity WHERE backend_type = 'client backend'
  AND (state <> 'idle' OR clock_timestamp() - state_change < interval '30 s'))`

/** Bytes that each file counts in addition to its size: an empty table takes an inode, and a disk may have only one per 16 KiB. */
const FILE_BYTES = 8_192

/** Reads bytes on disk by tenant, including temporary tables and large objects. Omits a database that is dropped meanwhile. */
export async function readSizes(session: Session, which: 'all' | 'busy'): Promise<ReadonlyMap<string, number>> {
  const rows = await session.query<{ name: string; bytes: string | null }>(
    `SELECT datname AS name, pg_database_size(oid) + ${FILE_BYTES} * (SELECT count(*) FROM pg_ls_dir('base/' || oid, true, false)) AS bytes
     FROM pg_database
     WHERE NOT datistemplate ${which === 'busy' ? `AND ${BUSY}` : ''}`,
  )
  return new Map(
    rows.flatMap(({ name, bytes }) => (kindOf(name) === 'tenant' && bytes !== null ? [[name, Number(bytes)] as const] : [])),
  )
}

/** Kind of a database or role, as encoded in its name. Tenants' names contain no underscore, so that kinds cannot overlap. */
type NameKind = 'tenant' | 'spare' | 'making' | 'trash' | 'foreign'

const KINDS: readonly (readonly [NameKind, RegExp])[] = [
  ['spare', /^pool_[0-9a-f]{16}$/],
  ['making', /^making_[0-9a-f]{16}$/],
  ['trash', /^trash_[0-9a-f]{16}$/],
  ['tenant', /^(?!postgres$|template[01]$)[a-z][a-z0-9]{0,21}$/],
]

/** Returns the kind of a database or role; `foreign` for a name that Mooring did not assign. */
export function kindOf(name: string): NameKind {
  return KINDS.find(([, pattern]) => pattern.test(name))?.[0] ?? 'foreign'
}

/** Returns a random, unused name of the given kind. `owner`: eight hexadecimal digits that the name of a discarded database begins with. */
export function freshName(kind: 'pool' | 'making' | 'trash', owner = ''): string {
  return `${kind}_${owner}${randomBytes(8).toString('hex').slice(owner.length)}`
}

/**
 * Protects the administrator's own databases and roles.
 * @throws MooringError `engine_failed` when a tenant cannot have the name
 */
export function assertTenantName(name: string): void {
  if (kindOf(name) !== 'tenant') throw new MooringError(EngineCode.failed, `"${name}" is not the name of a tenant`)
}
