import { MooringError } from '../../../../shared/errors.ts'
import { EngineCode } from '../../engine.ts'
import type { Session } from '../connection.ts'
import { quoteName } from '../catalog.ts'
import { errnoOf } from '../errors.ts'
import { type Move, moveDefinition } from './definitions.ts'

/** Row of SHOW CREATE VIEW, TRIGGER, FUNCTION and so on. Each statement has its own name for the column with the definition. */
interface Shown {
  readonly sql_mode?: string
  /** Time zone of an event, in which its definition has times. */
  readonly time_zone?: string
  readonly collation_connection: string
  readonly [column: string]: string | null | undefined
}

/** Object whose definition runs with the rights of its definer. */
export interface Program {
  readonly kind: string
  readonly name: string
  /** Column of SHOW CREATE that has the definition. */
  readonly column: string
  /** When an event was created or changed, in seconds since 1970. */
  readonly changedAt?: string | number
}

async function listRoutines(session: Session, { from }: Move): Promise<readonly Program[]> {
  const rows = await session.query<{ kind: string; name: string }>(
    `SELECT ROUTINE_TYPE AS kind, ROUTINE_NAME AS name FROM information_schema.ROUTINES
     WHERE ROUTINE_SCHEMA = ? ORDER BY ROUTINE_TYPE, ROUTINE_NAME`,
    [from],
  )
  return rows.map(({ kind, name }) => ({
    kind,
    name,
    column: `Create ${kind.toLowerCase().replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())}`,
  }))
}

/** Lists triggers; those of one event in the order in which they fire. */
async function listTriggers(session: Session, { from }: Move): Promise<readonly Program[]> {
  const rows = await session.query<{ name: string }>(
    `SELECT TRIGGER_NAME AS name FROM information_schema.TRIGGERS
     WHERE TRIGGER_SCHEMA = ? ORDER BY EVENT_OBJECT_TABLE, EVENT_MANIPULATION, ACTION_TIMING, ACTION_ORDER`,
    [from],
  )
  return rows.map(({ name }) => ({ kind: 'TRIGGER', name, column: 'SQL Original Statement' }))
}

async function listEvents(session: Session, { from }: Move): Promise<readonly Program[]> {
  const rows = await session.query<{ name: string; changedAt: string | number }>(
    `SELECT EVENT_NAME AS name, UNIX_TIMESTAMP(LAST_ALTERED) AS changedAt FROM information_schema.EVENTS
     WHERE EVENT_SCHEMA = ? ORDER BY EVENT_NAME`,
    [from],
  )
  return rows.map((row) => ({ ...row, kind: 'EVENT', column: 'Create Event' }))
}

/** One session by two names. `definer` runs the statements that show and create the object; views.ts bounds those of a view in time. */
interface Sessions {
  readonly session: Session
  readonly definer: Session
}

/**
 * Creates an object in the new database, the session's default database, under the mode and collation of the original. The server
 * prints the text from a tenant's definition; the session accepts one statement per call, so that the text cannot contain a second one.
 */
export async function copyProgram(
  { session, definer }: Sessions,
  { kind, name, column, changedAt }: Program,
  move: Move,
): Promise<void> {
  const [shown] = await definer.query<Shown>(`SHOW CREATE ${kind} ${quoteName(move.from)}.${quoteName(name)}`)
  const text = shown?.[column]
  if (typeof text !== 'string') throw new MooringError(EngineCode.failed, `the server does not show a ${kind.toLowerCase()}`)
  const mode = shown?.sql_mode ?? ''
  await session.query('SET SESSION sql_mode = ?, SESSION collation_connection = ?', [mode, shown?.collation_connection])
  // The server creates no event whose time has passed, and times of its definition are in its time zone.
  if (changedAt !== undefined) await session.query('SET timestamp = ?, time_zone = ?', [changedAt, shown?.time_zone])
  const definition = moveDefinition(text, move, mode)
  try {
    await definer.query(definition)
  } catch (error) {
    // The session goes on only after an error of the server.
    if (errnoOf(error) !== undefined) await session.query(CLEAR)
    throw error
  }
  await session.query(CLEAR)
}

const CLEAR = `SET SESSION sql_mode = '', timestamp = DEFAULT, time_zone = DEFAULT`

async function copyAll(session: Session, programs: readonly Program[], move: Move): Promise<void> {
  for (const program of programs) await copyProgram({ session, definer: session }, program, move)
}

export async function copyRoutines(session: Session, move: Move): Promise<void> {
  await copyAll(session, await listRoutines(session, move), move)
}

export async function copyTriggers(session: Session, move: Move): Promise<void> {
  await copyAll(session, await listTriggers(session, move), move)
}

export async function copyEvents(session: Session, move: Move): Promise<void> {
  await copyAll(session, await listEvents(session, move), move)
}

/** Finds objects of a database whose definer is not its tenant. */
const DEFINED = [
  ...['ROUTINES WHERE ROUTINE_SCHEMA', 'VIEWS WHERE TABLE_SCHEMA'],
  ...['TRIGGERS WHERE TRIGGER_SCHEMA', 'EVENTS WHERE EVENT_SCHEMA'],
]
const FOREIGN_DEFINERS = DEFINED.map((source) => `SELECT DEFINER FROM information_schema.${source} = ? AND DEFINER <> ?`).join(
  ' UNION ALL ',
)

/** @throws MooringError `engine_failed` when an object of the database would run with the rights of another account */
export async function assertOwnDefiners(session: Session, database: string): Promise<void> {
  const definer = `${database}@%`
  const found = await session.query(
    FOREIGN_DEFINERS,
    DEFINED.flatMap(() => [database, definer]),
  )
  if (found.length > 0) throw new MooringError(EngineCode.failed, `objects of ${database} have another definer than its tenant`)
}
