import { MooringError } from '../../../shared/errors.ts'
import { type ExtensionCalls, type Origin, EngineCode } from '../engine.ts'
import { type Connection, quoteName } from './connection.ts'
import { adopt } from './privileges.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import { freshName, kindOf } from './catalog.ts'

/** Returns the GRANT of a tenant's privileges on its database. The administrator stays the owner, because an owner could lift the limits. */
export const grantDatabase = (database: string, role: string): string =>
  `GRANT CONNECT, TEMPORARY, CREATE ON DATABASE ${quoteName(database)} TO ${quoteName(role)}`

/** Builder of databases that no tenant can use yet. */
export interface Builder {
  /** Names of databases that this process is building, which are no leftovers. */
  readonly inFlight: ReadonlySet<string>
  /**
   * Builds a database with a role of the same name that cannot log in yet, and calls `use`, which renames both. After a failure, tidy finds
   * the rest by its name, `making_…`.
   */
  withRole(origin: Origin, use: (making: string) => Promise<void>): Promise<void>
  /** Builds a database for an existing role, which cannot connect to it yet, and calls `use` with its name. */
  forRole(role: string, origin: Origin, use: (making: string) => Promise<void>): Promise<void>
}

/** Template that is always available, because it rejects connections. The first session in a copy starts three times slower than with template1. */
const PRISTINE = `template0 ENCODING 'UTF8'`

/** Creates a builder of isolated databases: empty ones from template1 or template0, which no tenant can change, or copies of a tenant's database. */
export function createBuilder(connection: Connection, { calls }: { readonly calls: ExtensionCalls }): Builder {
  const inFlight = new Set<string>()

  /** Returns the statement for a database that rejects connections, until PUBLIC's default privilege to connect is revoked. */
  const creation = (source: string, making: string, strategy: string) =>
    `CREATE DATABASE ${quoteName(making)} TEMPLATE ${source} ${strategy} ALLOW_CONNECTIONS false`

  async function create(making: string, { template }: Origin): Promise<void> {
    if (template === undefined) return createEmpty(making)
    await assertIdle(connection, template)
    const { strategy } = await readCreationOptions(connection)
    try {
      await connection.copies.query(creation(quoteName(template), making, strategy))
    } catch (error) {
      throw templateError(template, error)
    }
  }

  async function createEmpty(making: string): Promise<void> {
    const { strategy, isPrepared } = await readCreationOptions(connection)
    try {
      await connection.spares.query(creation(isPrepared ? 'template1' : PRISTINE, making, strategy))
    } catch (error) {
      // A session was opened in template1 since the check.
      if (!isPrepared || sqlStateOf(error) !== SqlState.objectInUse) throw error
      await connection.spares.query(creation(PRISTINE, making, strategy))
    }
  }

  async function build(role: (making: string) => string, origin: Origin, use: (making: string) => Promise<void>): Promise<void> {
    const making = freshName('making')
    inFlight.add(making)
    try {
      await create(making, origin)
      const owner = role(making)
      const own = owner === making ? [`CREATE ROLE ${quoteName(owner)} NOLOGIN`, grantDatabase(making, owner)] : []
      const open = [
        `REVOKE ALL ON DATABASE ${quoteName(making)} FROM PUBLIC`,
        `ALTER DATABASE ${quoteName(making)} ALLOW_CONNECTIONS true`,
      ]
      await connection.query([...own, ...open].join('; '))
      await connection.inside(making, (session) => adopt(session, { owner, origin, calls }))
      await use(making)
    } finally {
      inFlight.delete(making)
    }
  }

  return {
    inFlight,
    withRole: (origin, use) => build((making) => making, origin, use),
    forRole: (role, origin, use) => build(() => role, origin, use),
  }
}

interface CreationOptions {
  /**
   * STRATEGY clause, which makes 15 copy and flush files one by one as 14 does. The default of 15 copies through the WAL and leaves some 300
   * files per database to the next checkpoint: a DROP DATABASE, which waits for a checkpoint, took 40 s after thirty creations.
   */
  readonly strategy: string
  /**
   * Whether template1 can be copied, which requires that no session is open in it. Since the session of harden it has the relation cache file
   * with which sessions start faster (PostgreSQL, relcache.c: pg_internal.init), and copies have that file too.
   */
  readonly isPrepared: boolean
}

async function readCreationOptions(connection: Connection): Promise<CreationOptions> {
  const [row] = await connection.query<{ named: boolean; prepared: boolean }>(
    `SELECT current_setting('server_version_num')::int >= 150000 AS named, pg_encoding_to_char(encoding) = 'UTF8'
       AND NOT EXISTS (SELECT FROM pg_stat_activity s WHERE s.datid = d.oid AND backend_type = 'client backend') AS prepared
     FROM pg_database d WHERE datname = 'template1'`,
  )
  return { strategy: row?.named ? 'STRATEGY file_copy' : '', isPrepared: row?.prepared ?? false }
}

/** Rejects a template with open sessions at once. CREATE DATABASE blocks new sessions itself, but would wait 5 s for open ones to end. */
async function assertIdle(connection: Connection, template: string): Promise<void> {
  if (kindOf(template) !== 'tenant') throw missing(template)
  const [found] = await connection.query<{ busy: boolean }>(
    `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend') AS busy
     FROM pg_database WHERE datname = $1`,
    [template],
  )
  if (!found) throw missing(template)
  if (found.busy) throw inUse(template)
}

function templateError(template: string, error: unknown): unknown {
  const state = sqlStateOf(error)
  if (state === SqlState.undefinedDatabase) return missing(template, error)
  return state === SqlState.objectInUse ? inUse(template, error) : error
}

const missing = (template: string, cause?: unknown): MooringError =>
  new MooringError(EngineCode.templateMissing, `there is no database ${template} on this server`, { cause })
const inUse = (template: string, cause?: unknown): MooringError =>
  new MooringError(EngineCode.templateInUse, `sessions are open on ${template}`, { cause })
