import { setTimeout as delay } from 'node:timers/promises'
import { MooringError } from '../../../../shared/errors.ts'
import { EngineCode } from '../../engine.ts'
import { kindOf, type MysqlFamily, quoteName, readTenant } from '../catalog.ts'
import type { Connection, Session } from '../connection.ts'
import { Errno, errnoOf } from '../errors.ts'
import type { Move } from './definitions.ts'
import { assertOwnDefiners, copyEvents, copyRoutines, copyTriggers } from './programs.ts'
import { adoptParents, copyTable, listTables, type Table } from './tables.ts'
import { assertViewsOpen, copyViews } from './views.ts'

interface Deps {
  readonly connection: Connection
  readonly family: MysqlFamily
}

/** @throws MooringError `template_missing`, `template_in_use`, `template_not_copyable` */
export async function assertCopyable({ connection, family }: Deps, template: string): Promise<void> {
  const isThere = kindOf(template) === 'tenant' && (await readTenant(connection, family, template)).database
  if (!isThere) throw new MooringError(EngineCode.templateMissing, `there is no database ${template} on this server`)
  const deadline = performance.now() + GRACE_MS
  while (await hasSessions(connection, template)) {
    if (performance.now() > deadline) throw inUse(template, 'sessions are open on it')
    await delay(POLL_MS)
  }
  await assertViewsOpen(connection, template)
}

/** Time for which the server may still list sessions that their clients have closed. */
const GRACE_MS = 250
const POLL_MS = 10

async function hasSessions(session: Session, database: string): Promise<boolean> {
  const found = await session.query(
    `SELECT ID FROM information_schema.PROCESSLIST
     WHERE (USER = ? OR DB = ?) AND USER <> SUBSTRING_INDEX(CURRENT_USER(), '@', 1) LIMIT 1`,
    [database, database],
  )
  return found.length > 0
}

const inUse = (template: string, why: string, cause?: unknown): MooringError =>
  new MooringError(EngineCode.templateInUse, `${template} cannot be copied: ${why}`, { cause })

/**
 * Copies a template into an empty database within the server: no row passes through this process. All tables of the template are locked
 * against writes meanwhile, so that the copy shows one moment. Sessions that log in to the template stay open, and their writes wait.
 * @throws MooringError `template_in_use` when a session holds a lock on a table or changes the tables; `template_not_copyable`
 */
export async function copyDatabase({ connection, family }: Deps, move: Move): Promise<void> {
  await connection.frozen(async (freezer) => {
    const tables = await listTables(freezer, move.from)
    await freeze(freezer, tables, move.from)
    await connection.alone(async (session) => {
      await prepare(session, family, move)
      const present = await listTables(session, move.from)
      if (JSON.stringify(present) !== JSON.stringify(tables)) throw inUse(move.from, 'its tables were changed meanwhile')
      for (const table of tables) await copyTable(session, table, move)
      await adoptParents(session, tables, move)
      await copyRoutines(session, move)
      await copyViews(session, move)
      // Triggers come late, so that they do not change copied rows.
      await copyTriggers(session, move)
      await copyEvents(session, move)
      await assertOwnDefiners(session, move.to)
    })
  })
}

async function freeze(session: Session, tables: readonly Table[], database: string): Promise<void> {
  if (tables.length === 0) return
  const locks = tables.map(({ name }) => `${quoteName(database)}.${quoteName(name)} READ`)
  try {
    await session.query(`LOCK TABLES ${locks.join(', ')}`)
  } catch (error) {
    throw errnoOf(error) === Errno.lockWaitTimeout ? inUse(database, 'a session holds a lock on a table', error) : error
  }
}

/** Sets up the session and the new database like the template. Constraints are not checked again: the template may have rows that violate them. */
async function prepare(session: Session, family: MysqlFamily, { from, to }: Move): Promise<void> {
  const lenient = family === 'mariadb' ? ', SESSION check_constraint_checks = 0' : ''
  await session.query(`SET SESSION foreign_key_checks = 0, SESSION unique_checks = 0, SESSION innodb_strict_mode = 0${lenient}`)
  const [options] = await session.query<{ charset: string; collation: string }>(
    `SELECT DEFAULT_CHARACTER_SET_NAME AS charset, DEFAULT_COLLATION_NAME AS collation FROM information_schema.SCHEMATA
     WHERE SCHEMA_NAME = ?`,
    [from],
  )
  if (options)
    await session.query(`ALTER DATABASE ${quoteName(to)} CHARACTER SET ${options.charset} COLLATE ${options.collation}`)
  await session.query(`USE ${quoteName(to)}`)
}
