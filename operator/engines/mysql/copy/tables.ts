import type { Session } from '../connection.ts'
import { Errno, errnoOf } from '../errors.ts'
import { quoteName } from '../catalog.ts'
import { type Move, moveNames } from './definitions.ts'

/** Table or sequence of a template. */
export interface Table {
  readonly name: string
  /** `BASE TABLE`; in MariaDB also `SEQUENCE` and `SYSTEM VERSIONED`. */
  readonly type: string
  readonly engine: string | null
  readonly comment: string
  /** Names of the tables that its foreign keys refer to, except itself. */
  readonly parents: readonly string[]
}

interface Column {
  readonly name: string
  readonly type: string
  readonly generation: string | null
}

/** Engines of tables without rows of their own. */
const WITHOUT_ROWS: ReadonlySet<string | null> = new Set(['MRG_MYISAM', 'MRG_MyISAM', 'FEDERATED', 'BLACKHOLE'])

/**
 * Lists tables and sequences in the order in which to create them. Sequences come first, because a default may use one, and tables without
 * rows of their own last, because a merged table names its parts. A table comes after its parents, except in a circle.
 */
export async function listTables(session: Session, database: string): Promise<readonly Table[]> {
  const found = await session.query<Omit<Table, 'parents'>>(
    `SELECT TABLE_NAME AS name, TABLE_TYPE AS type, ENGINE AS engine, TABLE_COMMENT AS comment FROM information_schema.TABLES
     WHERE TABLE_SCHEMA = ? AND TABLE_TYPE <> 'VIEW' ORDER BY TABLE_NAME`,
    [database],
  )
  const keys = await session.query<{ child: string; parent: string }>(
    `SELECT TABLE_NAME AS child, REFERENCED_TABLE_NAME AS parent FROM information_schema.REFERENTIAL_CONSTRAINTS
     WHERE CONSTRAINT_SCHEMA = ? AND TABLE_NAME <> REFERENCED_TABLE_NAME ORDER BY TABLE_NAME, REFERENCED_TABLE_NAME`,
    [database],
  )
  const parents = Map.groupBy(keys, ({ child }) => child)
  const tables = found.map((table) => ({ ...table, parents: (parents.get(table.name) ?? []).map(({ parent }) => parent) }))
  const rank = ({ type, engine }: Table): number => (type === 'SEQUENCE' ? 0 : WITHOUT_ROWS.has(engine) ? 2 : 1)
  return sortByParents(tables).toSorted((a, b) => rank(a) - rank(b))
}

/** Sorts tables after their parents; those of a circle come in any order. Pure. */
export function sortByParents<T extends Pick<Table, 'name' | 'parents'>>(tables: readonly T[]): readonly T[] {
  const sorted: T[] = []
  let left = tables
  while (left.length > 0) {
    const waiting = new Set(left.map(({ name }) => name))
    const isFree = ({ parents }: T): boolean => !parents.some((parent) => waiting.has(parent))
    const next = left.some(isFree) ? left.filter(isFree) : left.slice(0, 1)
    sorted.push(...next)
    left = left.filter((table) => !next.includes(table))
  }
  return sorted
}

/**
 * Activates the foreign keys of tables that were created before their parents: MySQL 8.0 ignores their ON DELETE until the table is
 * altered.
 */
export async function adoptParents(session: Session, tables: readonly Table[], { to }: Move): Promise<void> {
  const created = new Set<string>()
  for (const { name, parents, comment } of tables) {
    if (parents.some((parent) => !created.has(parent)))
      await session.query(`ALTER TABLE ${quoteName(to)}.${quoteName(name)} COMMENT = ?`, [comment])
    created.add(name)
  }
}

/** Creates a table in the new database, the session's default database, and copies its rows. */
export async function copyTable(session: Session, table: Table, move: Move): Promise<void> {
  const source = `${quoteName(move.from)}.${quoteName(table.name)}`
  const target = `${quoteName(move.to)}.${quoteName(table.name)}`
  if (table.type === 'SEQUENCE') return copySequence(session, source, target)
  const [row] = await session.query<Record<'Create Table', string>>(`SHOW CREATE TABLE ${source}`)
  await session.query(moveNames(row?.['Create Table'] ?? '', move))
  if (WITHOUT_ROWS.has(table.engine)) return
  const columns = await listColumns(session, move.from, table.name)
  const stored = columns.filter(({ generation }) => generation === null || generation === '').map(({ name }) => name)
  const history = table.type === 'SYSTEM VERSIONED' ? await historyOf(session, columns) : undefined
  const list = [...stored, ...(history ?? [])].map(quoteName).join(', ')
  await session.query(`INSERT INTO ${target} (${list}) SELECT ${list} FROM ${source}${history ? ' FOR SYSTEM_TIME ALL' : ''}`)
}

async function copySequence(session: Session, source: string, target: string): Promise<void> {
  const [row] = await session.query<Record<'Create Table', string>>(`SHOW CREATE SEQUENCE ${source}`)
  await session.query(row?.['Create Table'] ?? '')
  await session.query(`INSERT INTO ${target} SELECT * FROM ${source}`)
}

async function listColumns(session: Session, database: string, table: string): Promise<readonly Column[]> {
  return session.query<Column>(
    `SELECT COLUMN_NAME AS name, DATA_TYPE AS type, GENERATION_EXPRESSION AS generation FROM information_schema.COLUMNS
     WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`,
    [database, table],
  )
}

/**
 * Returns the columns with the period of each row of a system-versioned table. Returns undefined when only current rows can be copied: the
 * period consists of transaction ids, or the server is older than MariaDB 10.11.
 */
async function historyOf(session: Session, columns: readonly Column[]): Promise<readonly string[] | undefined> {
  const times = columns.filter(({ generation }) => generation === 'ROW START' || generation === 'ROW END')
  if (times.some(({ type }) => type === 'bigint')) return undefined
  try {
    await session.query('SET SESSION system_versioning_insert_history = 1')
  } catch (error) {
    if (errnoOf(error) === Errno.unknownVariable) return undefined
    throw error
  }
  return times.length > 0 ? times.map(({ name }) => name) : ['row_start', 'row_end']
}
