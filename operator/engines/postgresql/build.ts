import { MooringError } from '../../../shared/errors.ts'
import type { Origin } from '../engine.ts'
import { EngineCode } from '../engine.ts'
import type { Connection } from './connection.ts'
import { quoteName } from './connection.ts'
import { adopt } from './adopt.ts'
import { SqlState, sqlStateOf } from './errors.ts'
import { freshName, kindOf } from './names.ts'

/** What a tenant may do with its database as such. The database stays the admin's: an owner could undo its own limits. */
export const grantDatabase = (database: string, role: string): string =>
  `GRANT CONNECT, TEMPORARY, CREATE ON DATABASE ${quoteName(database)} TO ${quoteName(role)}`

export interface Builder {
  /** Names that are being built by this process now: not rubbish. */
  readonly inFlight: ReadonlySet<string>
  /**
   * Builds a database with a role of the same name that cannot log in yet, and gives it to `use`, which renames both.
   * Whatever is left when anything fails is found by its name, `making_…`.
   */
  withRole(origin: Origin, use: (making: string) => Promise<void>): Promise<void>
  /** Builds a database for a role that exists, which cannot connect to it yet. */
  forRole(role: string, origin: Origin, use: (making: string) => Promise<void>): Promise<void>
}

/** Nobody may connect to it, so it is always to be had; but the first session in a copy takes three times as long as in one of template1. */
const PRISTINE = `template0 ENCODING 'UTF8'`

/** Builds isolated databases, empty or as copies, from a template that no tenant can change (template1, template0) or from another tenant's. */
export function builder(connection: Connection): Builder {
  const inFlight = new Set<string>()

  /** Closed until PUBLIC's right to connect, which each new database has, is gone. */
  const creation = (source: string, making: string, strategy: string) =>
    `CREATE DATABASE ${quoteName(making)} TEMPLATE ${source} ${strategy} ALLOW_CONNECTIONS false`

  async function create(making: string, { template }: Origin): Promise<void> {
    if (template === undefined) return createEmpty(making)
    await assertIdle(connection, template)
    const { strategy } = await lookAround(connection)
    try {
      await connection.copies.query(creation(quoteName(template), making, strategy))
    } catch (error) {
      throw templateError(template, error)
    }
  }

  async function createEmpty(making: string): Promise<void> {
    const { strategy, isPrepared } = await lookAround(connection)
    try {
      await connection.spares.query(creation(isPrepared ? 'template1' : PRISTINE, making, strategy))
    } catch (error) {
      // A session was opened in it meanwhile.
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
      await connection.inside(making, (session) => adopt(session, { owner, origin }))
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

interface Surroundings {
  /**
   * Files are copied and flushed one by one, as 14 always does. What 15 does by default, through the log, leaves some 300 files to be flushed
   * by the next checkpoint: dropping a database, which waits for one, took 40 s after thirty had been made.
   */
  readonly strategy: string
  /**
   * Whether empty databases can be made from template1, which harden has closed: since its session there, it has the file with which sessions
   * start fast (PostgreSQL, relcache.c: pg_internal.init), and a copy of it has it too. Not while somebody is in it.
   */
  readonly isPrepared: boolean
}

async function lookAround(connection: Connection): Promise<Surroundings> {
  const [row] = await connection.query<{ named: boolean; prepared: boolean }>(
    `SELECT current_setting('server_version_num')::int >= 150000 AS named, pg_encoding_to_char(encoding) = 'UTF8'
       AND NOT EXISTS (SELECT FROM pg_stat_activity s WHERE s.datid = d.oid AND backend_type = 'client backend') AS prepared
     FROM pg_database d WHERE datname = 'template1'`,
  )
  return { strategy: row?.named ? 'STRATEGY file_copy' : '', isPrepared: row?.prepared ?? false }
}

/** While it copies, the server holds up new sessions on the template by itself; this spares it waiting 5 s for open ones. */
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
