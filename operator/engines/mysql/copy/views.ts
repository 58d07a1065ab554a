import { MooringError } from '../../../../shared/errors.ts'
import { EngineCode } from '../../engine.ts'
import { quoteName } from '../catalog.ts'
import { type BoundedSession, type Connection, Overrun, type Session } from '../connection.ts'
import { Errno, errnoOf } from '../errors.ts'
import type { Move } from './definitions.ts'
import { copyProgram, type Program } from './programs.ts'

/**
 * Maximum duration of a statement that opens a view, in ms. The server opens all views that a view reads, each as often as it is named: 16 views
 * that each read the one below twice take 6 GiB of memory or end the server. In 0.5 s they take 50 to 200 MiB; KILL ends that within 0.1 s.
 */
const OPEN_MS = 500
/** Maximum duration of these statements for all views of a template together, in ms. */
const OPEN_ALL_MS = 10_000

/** Errors of a view whose table, column or function is missing or denied. */
const INCOMPLETE: readonly unknown[] = [
  ...[Errno.invalidView, Errno.noSuchTable, Errno.unknownColumn, Errno.unknownRoutine],
  ...[Errno.tableDenied, Errno.columnDenied, Errno.routineDenied],
]

const isIncomplete = (error: unknown): boolean => INCOMPLETE.includes(errnoOf(error))

async function listViews(session: Session, database: string): Promise<readonly Program[]> {
  const rows = await session.query<{ name: string }>(
    'SELECT TABLE_NAME AS name FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME',
    [database],
  )
  return rows.map(({ name }) => ({ kind: 'VIEW', name, column: 'Create View' }))
}

/** Runs statements that open views of a template. */
type Open = <Row extends object>(view: Program, text: string) => Promise<Row[]>

/** @throws MooringError `template_not_copyable` when a statement takes too long */
function openerOf(session: BoundedSession): Open {
  const deadline = performance.now() + OPEN_ALL_MS
  return async function open({ name }, text) {
    try {
      return await session.within(Math.min(OPEN_MS, deadline - performance.now()), text)
    } catch (error) {
      if (!(error instanceof Overrun)) throw error
      const message = `the view ${name} of the template takes too long to open: it reads other views too many times; drop or simplify it`
      throw new MooringError(EngineCode.templateNotCopyable, message, { cause: error })
    }
  }
}

/**
 * Opens each view once, before anything is changed for a copy.
 * @throws MooringError `template_not_copyable` when a view takes too long
 */
export async function assertViewsOpen(connection: Connection, database: string): Promise<void> {
  const views = await listViews(connection, database)
  if (views.length === 0) return
  await connection.alone(async (session) => {
    const open = openerOf(session)
    for (const view of views) {
      try {
        await open(view, `SHOW CREATE VIEW ${quoteName(database)}.${quoteName(view.name)}`)
      } catch (error) {
        if (!isIncomplete(error)) throw error
      }
    }
  })
}

/**
 * Copies views in rounds, because a view may depend on others. A view that is invalid in the template is left out.
 * @throws MooringError `template_not_copyable` when a view takes too long, because the tenant has changed it after {@link assertViewsOpen}
 */
export async function copyViews(session: BoundedSession, move: Move): Promise<void> {
  const open = openerOf(session)
  let left = await listViews(session, move.from)
  for (;;) {
    const incomplete: Program[] = []
    for (const view of left) if (!(await tryCopy(session, open, { view, move }))) incomplete.push(view)
    if (incomplete.length === 0 || incomplete.length === left.length) return
    left = incomplete
  }
}

interface ViewCopy {
  readonly view: Program
  readonly move: Move
}

/** Copies a view. Returns false when the view needs an object that is missing, perhaps a view that is copied later. */
async function tryCopy(session: Session, open: Open, { view, move }: ViewCopy): Promise<boolean> {
  try {
    await copyProgram({ session, definer: { query: (text) => open(view, text) } }, view, move)
    return true
  } catch (error) {
    if (isIncomplete(error)) return false
    throw error
  }
}
