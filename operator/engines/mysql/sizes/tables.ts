import { type MysqlFamily, quoteName } from '../catalog.ts'
import type { Session } from '../connection.ts'
import { errnoOf } from '../errors.ts'

/** Returns a query for each family that ends with an error after `ms`. The text begins with SELECT. */
export const bounded = (ms: number, text: string): Readonly<Record<MysqlFamily, string>> => ({
  mariadb: `SET STATEMENT max_statement_time=${ms / 1_000} FOR ${text}`,
  mysql: text.replace('SELECT', `SELECT /*+ MAX_EXECUTION_TIME(${ms}) */`),
})

/** Returns the sum of the column `bytes`, which is NULL for the sum of no rows. */
export async function sumOf(session: Session, query: string, values: readonly string[]): Promise<number> {
  const rows = await session.query<{ readonly bytes: string | number | null }>(query, values)
  return rows.reduce((sum, { bytes }) => sum + Number(bytes ?? 0), 0)
}

/** Returns undefined when the server refuses what is read, or takes too long for it, as while a tenant's lock hides it. */
export async function unlessHidden<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

/** Lists tables and sequences without opening one. The server reads the kind of each from its file, and waits for no lock. */
export async function listTables(session: Session, database: string): Promise<readonly string[]> {
  const rows = await session.query<Record<string, string>>(
    `SHOW FULL TABLES FROM ${quoteName(database)} WHERE Table_type <> 'VIEW'`,
  )
  return rows.flatMap((row) => row[`Tables_in_${database}`] ?? [])
}

/** Size of one table as the server reports it. */
export interface TableSize {
  readonly name: string
  readonly engine: string | null
  readonly bytes: string | number | null
}

/**
 * Query for the sizes of named tables, which it opens. Only the names of tables are asked for: a view opens all views that it reads, so that
 * 16 nested views take 6 GiB of memory or end the server. A tenant may give the name to a view meanwhile, so the time is bounded.
 */
const SIZES = bounded(
  1_000,
  `SELECT TABLE_NAME AS name, ENGINE AS engine, DATA_LENGTH + INDEX_LENGTH AS bytes FROM information_schema.TABLES
   WHERE TABLE_SCHEMA = ? AND TABLE_NAME IN (?)`,
)
/** Number of tables of one query. */
const AT_ONCE = 200

interface Named {
  readonly database: string
  readonly tables: readonly string[]
}

/** Reads the sizes of tables. Waits for locks of the tenant. */
export async function readTableSizes(
  session: Session,
  family: MysqlFamily,
  { database, tables }: Named,
): Promise<readonly TableSize[]> {
  const sizes: TableSize[] = []
  for (let start = 0; start < tables.length; start += AT_ONCE)
    sizes.push(...(await session.query<TableSize>(SIZES[family], [database, tables.slice(start, start + AT_ONCE)])))
  return sizes
}
