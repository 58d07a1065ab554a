import { randomBytes } from 'node:crypto'
import { MooringError } from '../../../shared/errors.ts'
import {
  type EngineAdmin,
  EngineCode,
  type Extension,
  type ExtensionCalls,
  type InstalledExtensions,
  type RefusedExtension,
} from '../engine.ts'
import { kindOf } from './catalog.ts'
import { type Connection, quoteName, quoteText, type Session } from './connection.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import { installTrigger, recordAwaited } from './extension-trigger.ts'

/** Returns the extensions whose files the server has, with their default versions. */
export async function listExtensions(session: Session): Promise<readonly Extension[]> {
  return session.query<{ name: string; version: string }>(
    'SELECT name, default_version AS version FROM pg_available_extensions ORDER BY name',
  )
}

/**
 * Asserts that tenants cannot install extensions themselves. The script of a trusted extension runs as superuser, and published bugs let a
 * tenant run its own code in it (docs/isolation.md, "Extensions"). The runtimes remove `trusted` from the control files.
 * @throws MooringError `server_unsafe`
 */
export async function assertNoneTrusted(session: Session): Promise<void> {
  const trusted = await session.query<{ name: string }>(
    'SELECT DISTINCT name FROM pg_available_extension_versions WHERE trusted ORDER BY name',
  )
  if (trusted.length === 0) return
  const names = trusted.map(({ name }) => name).join(', ')
  throw new MooringError(EngineCode.unsafe, `tenants could install extensions as superuser: ${names} are marked as trusted`)
}

/** Extensions in tenants' databases on one server. */
export interface Extensions {
  /** Installs the missing extensions in a tenant's database. The tenant owns each extension, but no object in it. */
  readonly install: EngineAdmin['installExtensions']
  readonly findChanged: EngineAdmin['findChangedExtensions']
}

interface Available {
  readonly name: string
  readonly relocatable: boolean
  readonly requires: readonly string[] | null
}

interface Deps {
  readonly connection: Connection
  /** Calls that the trigger names which answers a tenant's CREATE EXTENSION. */
  readonly calls: ExtensionCalls
}

export function createExtensions({ connection, calls }: Deps): Extensions {
  /** What was found in databases by their oids. `owned`: oids of extensions, which the server lists for all databases. */
  let visited: ReadonlyMap<string, Visit> = new Map()

  /** Returns the wanted extensions that cannot be installed for any tenant. */
  async function unavailable(wanted: readonly string[]): Promise<readonly RefusedExtension[]> {
    const rows = await connection.query<Available>(
      `SELECT a.name, v.relocatable, v.requires FROM pg_available_extensions a
       JOIN pg_available_extension_versions v ON v.name = a.name AND v.version = a.default_version WHERE a.name = ANY ($1)`,
      [wanted],
    )
    const available = new Map(rows.map((row) => [row.name, row]))
    return wanted.flatMap((name) => {
      const found = available.get(name)
      // The script would run with a schema of the tenant in its search path, and so could call the tenant's functions.
      const isUnsafe = found !== undefined && (!found.relocatable || (found.requires?.length ?? 0) > 0)
      if (found && !isUnsafe) return []
      const message = isUnsafe ? 'cannot be installed safely for a tenant' : 'is not part of this server'
      return { name, reason: 'unavailable', message: `the extension ${name} ${message}` }
    })
  }

  async function installOne(session: Session, owner: string, extension: string): Promise<readonly RefusedExtension[]> {
    const schema = quoteName(`mooring_${randomBytes(8).toString('hex')}`)
    const name = quoteName(extension)
    const role = quoteText(owner)
    const statements = [
      // The script runs in a schema in which only the administrator can create objects, so it cannot call the tenant's functions.
      `CREATE SCHEMA ${schema}`,
      `CREATE EXTENSION ${name} SCHEMA ${schema}`,
      `CREATE SCHEMA IF NOT EXISTS public AUTHORIZATION ${quoteName(owner)}`,
      `ALTER EXTENSION ${name} SET SCHEMA public`,
      `DROP SCHEMA ${schema}`,
      // Makes the tenant the owner of the extension, which ALTER EXTENSION cannot: pg_restore comments on extensions, and migrations drop
      // them. The administrator still owns the functions and types in it.
      `UPDATE pg_extension SET extowner = ${role}::regrole WHERE extname = ${quoteText(extension)}`,
      `INSERT INTO pg_shdepend (dbid, classid, objid, objsubid, refclassid, refobjid, deptype)
       SELECT d.oid, 'pg_extension'::regclass, e.oid, 0, 'pg_authid'::regclass, ${role}::regrole, 'o'
       FROM pg_database d, pg_extension e WHERE datname = current_database() AND extname = ${quoteText(extension)}`,
    ]
    try {
      await session.query(statements.join('; '))
      return []
    } catch (error) {
      const state = sqlStateOf(error)
      // Another operator process has installed the extension meanwhile.
      if (state === SqlState.duplicateObject && (await missingIn(session, [extension])).length === 0) return []
      if (state === undefined || !CONFLICTS.includes(state)) throw error
      const message = `the extension ${extension} cannot be installed: schema public has an object with a name that it needs`
      return [{ name: extension, reason: 'conflict', message }]
    }
  }

  async function install(name: string, wanted: readonly string[]): Promise<InstalledExtensions> {
    const refused = [...(await unavailable(wanted))]
    const possible = wanted.filter((extension) => !refused.some((each) => each.name === extension))
    const installed = await connection.inside(name, async (session) => {
      await installTrigger(session, calls)
      for (const extension of await missingIn(session, possible)) refused.push(...(await installOne(session, name, extension)))
      const awaited = possible.filter((extension) => !refused.some((each) => each.name === extension))
      await recordAwaited(session, awaited)
      return installedIn(session)
    })
    return { installed, refused }
  }

  /** Returns the extensions of a database, and puts the trigger into one that an earlier version of Mooring made. */
  async function visit({ name, owned }: Listed): Promise<Visit | undefined> {
    try {
      const installed = await connection.inside(name, async (session) => {
        await installTrigger(session, calls)
        return installedIn(session)
      })
      return { owned, installed }
    } catch {
      // The database is being dropped or replaced. The next call visits it, if it is there.
      return undefined
    }
  }

  /** Visits the databases that are new, or in which an extension came or went: the server lists the owners of extensions in all databases. */
  async function findChanged(recorded: ReadonlyMap<string, readonly string[]>): Promise<readonly string[]> {
    const listed = (await connection.watch.query<Listed>(OWNED)).filter(
      ({ name }) => recorded.has(name) || kindOf(name) === 'spare',
    )
    const found = new Map<string, Visit>()
    const changed: string[] = []
    for (const database of listed) {
      const before = visited.get(database.oid)
      const now = before?.owned === database.owned ? before : await visit(database)
      if (!now) continue
      found.set(database.oid, now)
      const names = recorded.get(database.name)
      if (names && !isSame(names, now.installed)) changed.push(database.name)
    }
    visited = found
    return changed
  }

  return { install, findChanged }
}

/** Database of the server, and its extensions with an owner other than the administrator, which are those that {@link createExtensions} installs. */
interface Listed {
  readonly name: string
  readonly oid: string
  readonly owned: string
}

interface Visit {
  readonly owned: string
  readonly installed: readonly string[]
}

const OWNED = `
  SELECT datname AS name, d.oid::text AS oid, (
    SELECT coalesce(string_agg(objid::text, ',' ORDER BY objid), '') FROM pg_shdepend
    WHERE dbid = d.oid AND classid = 'pg_extension'::regclass AND deptype = 'o') AS owned
  FROM pg_database d WHERE datallowconn AND NOT datistemplate`

function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((name) => others.includes(name))
}

/** SQLSTATEs duplicate_object, duplicate_function, duplicate_table, duplicate_schema, and unique_violation of a catalog. */
const CONFLICTS: readonly string[] = ['42710', '42723', '42P07', '42P06', '23505']

async function missingIn(session: Session, wanted: readonly string[]): Promise<readonly string[]> {
  const installed = await installedIn(session)
  return wanted.filter((name) => !installed.includes(name))
}

/** Returns the extensions of the session's database apart from PL/pgSQL, which is in every database. */
async function installedIn(session: Session): Promise<readonly string[]> {
  const rows = await session.query<{ name: string }>(
    `SELECT extname AS name FROM pg_extension WHERE extname <> 'plpgsql' ORDER BY extname`,
  )
  return rows.map(({ name }) => name)
}
