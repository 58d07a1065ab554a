import type { Catalog, TenantState } from '../engine.ts'
import { LoginState } from '../engine.ts'
import type { Session } from './connection.ts'
import { kindOf } from './names.ts'

/** One name of the catalog: a database, a role, or both. */
export interface Entry extends TenantState {
  readonly name: string
}

interface Row {
  readonly name: string
  readonly database: boolean
  readonly login: boolean | null
}

const ALL = `
  SELECT coalesce(d.datname, r.rolname) AS name, d.datname IS NOT NULL AS database, r.rolcanlogin AS login
  FROM (SELECT datname FROM pg_database WHERE NOT datistemplate) d
  FULL JOIN (SELECT rolname, rolcanlogin FROM pg_roles WHERE NOT rolsuper AND rolname !~ '^pg_') r ON r.rolname = d.datname`

/** Every database and every ordinary role, in one round trip. */
export async function readEntries(session: Session): Promise<readonly Entry[]> {
  return (await session.query<Row>(ALL)).map(({ name, database, login }) => ({ name, database, login: loginOf(login) }))
}

/** One name, in one round trip. */
export async function readTenant(session: Session, name: string): Promise<TenantState> {
  const [row] = await session.query<Omit<Row, 'name'>>(
    `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1) AS database,
            (SELECT rolcanlogin FROM pg_roles WHERE rolname = $1) AS login`,
    [name],
  )
  return { database: row?.database ?? false, login: loginOf(row?.login ?? null) }
}

function loginOf(canLogin: boolean | null): LoginState {
  if (canLogin === null) return LoginState.absent
  return canLogin ? LoginState.enabled : LoginState.disabled
}

/** A spare is renamed into being with its role, in one transaction: with one of both missing it is only rubbish. */
export function isSpare({ name, database, login }: Entry): boolean {
  return kindOf(name) === 'spare' && database && login !== LoginState.absent
}

/** Sorts what the catalog has. `inFlight` are names that this process is building right now. Pure. */
export function catalogOf(entries: readonly Entry[], inFlight: ReadonlySet<string>): Catalog {
  const isLeftover = (entry: Entry): boolean =>
    !isSpare(entry) && ['spare', 'making', 'trash'].includes(kindOf(entry.name)) && !inFlight.has(entry.name)
  return {
    tenants: new Map(
      entries
        .filter(({ name }) => kindOf(name) === 'tenant')
        .map(({ name, database, login }): [string, TenantState] => [name, { database, login }]),
    ),
    spare: entries.filter(isSpare).length,
    leftovers: entries.filter(isLeftover).map(({ name }) => name),
  }
}

/** Databases with a session that did something within half a minute: no other grows. */
const BUSY = `oid IN (SELECT datid FROM pg_stat_activity WHERE backend_type = 'client backend'
  AND (state <> 'idle' OR clock_timestamp() - state_change < interval '30 s'))`

/** Counted for each file on top of its bytes: an empty table takes an inode, of which a disk may have one for each 16 KiB. */
const FILE_BYTES = 8_192

/** Bytes on disk by tenant, temporary tables and large objects included; a database that goes away meanwhile is left out. */
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
