import { randomBytes } from 'node:crypto'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode, type Extension, type RefusedExtension } from '../engine.ts'
import { type Connection, quoteName, quoteText, type Session } from './connection.ts'
import { SqlState, sqlStateOf } from './errors.ts'

/** The extensions that the server's files offer, with the version that would be installed. */
export async function listExtensions(session: Session): Promise<readonly Extension[]> {
  return session.query<{ name: string; version: string }>(
    'SELECT name, default_version AS version FROM pg_available_extensions ORDER BY name',
  )
}

/**
 * Throws when a tenant could install an extension by itself: the script of a trusted one runs as superuser, and published bugs let tenants
 * have their own code run by it (docs/isolation.md, "Extensions"). The runtimes remove the mark from the control files.
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

export interface Extensions {
  /** Installs what is missing of `wanted` in a tenant's database. The tenant owns each extension, but nothing that is in it. */
  install(name: string, wanted: readonly string[]): Promise<readonly RefusedExtension[]>
  /** Names of the tenants with a session that did something lately, in whose databases some of the wanted extensions are missing. */
  findMissing(wanted: ReadonlyMap<string, readonly string[]>): Promise<readonly string[]>
}

interface Available {
  readonly name: string
  readonly relocatable: boolean
  readonly requires: readonly string[] | null
}

export function createExtensions(connection: Connection): Extensions {
  /** Those of `wanted` that cannot be installed for any tenant. */
  async function unavailable(wanted: readonly string[]): Promise<readonly RefusedExtension[]> {
    const rows = await connection.query<Available>(
      `SELECT a.name, v.relocatable, v.requires FROM pg_available_extensions a
       JOIN pg_available_extension_versions v ON v.name = a.name AND v.version = a.default_version WHERE a.name = ANY ($1)`,
      [wanted],
    )
    const available = new Map(rows.map((row) => [row.name, row]))
    return wanted.flatMap((name) => {
      const found = available.get(name)
      // Its script would run with a schema of the tenant's in its search path, and could be made to call the tenant's functions.
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
      // The script runs in a schema that only the administrator can create objects in: none of the tenant's is found by it.
      `CREATE SCHEMA ${schema}`,
      `CREATE EXTENSION ${name} SCHEMA ${schema}`,
      `CREATE SCHEMA IF NOT EXISTS public AUTHORIZATION ${quoteName(owner)}`,
      `ALTER EXTENSION ${name} SET SCHEMA public`,
      `DROP SCHEMA ${schema}`,
      // What CREATE EXTENSION by the tenant would have done: pg_restore comments on extensions, and migrations drop them. There is no
      // ALTER EXTENSION … OWNER TO. The functions and types in it stay the administrator's.
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
      // Another process of ours was faster.
      if (state === SqlState.duplicateObject && (await missingIn(session, [extension])).length === 0) return []
      if (state === undefined || !CONFLICTS.includes(state)) throw error
      const message = `the extension ${extension} cannot be installed: schema public has an object with a name that it needs`
      return [{ name: extension, reason: 'conflict', message }]
    }
  }

  async function install(name: string, wanted: readonly string[]): Promise<readonly RefusedExtension[]> {
    const refused = [...(await unavailable(wanted))]
    const possible = wanted.filter((extension) => !refused.some((each) => each.name === extension))
    await connection.inside(name, async (session) => {
      for (const extension of await missingIn(session, possible)) refused.push(...(await installOne(session, name, extension)))
    })
    return refused
  }

  async function findMissing(wanted: ReadonlyMap<string, readonly string[]>): Promise<readonly string[]> {
    // An extension goes only by a statement of the tenant: no connection is opened to a database that is idle.
    const active = await connection.watch.query<{ name: string }>(
      `SELECT DISTINCT datname AS name FROM pg_stat_activity WHERE datname = ANY ($1) AND backend_type = 'client backend'
         AND (state <> 'idle' OR clock_timestamp() - state_change < interval '2 min')`,
      [[...wanted.keys()]],
    )
    const lacking: string[] = []
    for (const { name } of active) {
      const missing = await connection.inside(name, (session) => missingIn(session, wanted.get(name) ?? []))
      if (missing.length > 0) lacking.push(name)
    }
    return lacking
  }

  return { install, findMissing }
}

/** duplicate_object, duplicate_function, duplicate_table, duplicate_schema, unique_violation of a catalog */
const CONFLICTS: readonly string[] = ['42710', '42723', '42P07', '42P06', '23505']

async function missingIn(session: Session, wanted: readonly string[]): Promise<readonly string[]> {
  const installed = await session.query<{ name: string }>('SELECT extname AS name FROM pg_extension')
  const names = new Set(installed.map(({ name }) => name))
  return wanted.filter((name) => !names.has(name))
}
