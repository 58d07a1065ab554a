import type { MysqlFamily } from '../catalog.ts'
import type { Session } from '../connection.ts'
import { Errno, errnoOf } from '../errors.ts'
import { bounded, readTableSizes, sumOf, unlessHidden } from './tables.ts'

/** Returns the bytes on disk of a tenant's database; undefined when there is none. */
type ReadSize = (name: string) => Promise<number | undefined>

/**
 * Creates the function that measures the database of a server of one tenant. The server adds up the files of InnoDB, and the other tables are
 * read some at a time: without a size limit, a tenant may create any number of tables and views, and their list would not fit into the
 * operator's memory.
 *
 * The size leaves out the text of views, triggers, routines and events, which on MySQL 8.0 needs one statement per view, and tables that a tenant put
 * in the shared tablespace of MySQL. While a tenant's lock hides the tables, those of engines other than InnoDB count with the size that was read last.
 */
export function createOwnSize({ watch }: { readonly watch: Session }, family: MysqlFamily): ReadSize {
  /** Bytes outside of files of InnoDB by tenant, as read last. */
  const othersBefore = new Map<string, number>()

  return async function readSize(name) {
    const [database] = await watch.query('SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?', [name])
    if (!database) {
      othersBefore.delete(name)
      return undefined
    }
    const bytes = await readFiles(watch, family, name)
    const others = (await unlessHidden(() => readOthers(watch, family, name))) ?? othersBefore.get(name) ?? 0
    othersBefore.set(name, others)
    return bytes + others
  }
}

/** Queries for InnoDB's files, which wait for no lock of a tenant: of MySQL 8.0, and of MySQL 5.7 and MariaDB. */
const filesIn = (table: 'INNODB_TABLESPACES' | 'INNODB_SYS_TABLESPACES'): string =>
  `SELECT SUM(GREATEST(FILE_SIZE, ALLOCATED_SIZE)) AS bytes FROM information_schema.${table} WHERE NAME LIKE ?`

async function readFiles(session: Session, family: MysqlFamily, name: string): Promise<number> {
  const [latest, former] = [filesIn('INNODB_TABLESPACES'), filesIn('INNODB_SYS_TABLESPACES')]
  // The name of a tenant has letters and digits only, and a file is named `database/table`.
  const values = [`${name}/%`]
  if (family === 'mariadb') return sumOf(session, former, values)
  try {
    return await sumOf(session, latest, values)
  } catch (error) {
    if (errnoOf(error) !== Errno.unknownTable) throw error
    return sumOf(session, former, values)
  }
}

const PAGE = 500

/**
 * Names of the next tables of other engines. The server reads kind and engine from the file of each table, and opens no table or view: a sum of
 * sizes with the same condition would open all views. The server waits for each lock of a tenant anew.
 */
const OTHERS = bounded(
  1_000,
  `SELECT TABLE_NAME AS name FROM information_schema.TABLES
   WHERE TABLE_SCHEMA = ? AND TABLE_NAME > ? AND TABLE_TYPE = 'BASE TABLE' AND ENGINE <> 'InnoDB' ORDER BY TABLE_NAME LIMIT ${PAGE}`,
)

async function readOthers(session: Session, family: MysqlFamily, database: string): Promise<number> {
  let sum = 0
  let last = ''
  for (;;) {
    const tables = (await session.query<{ name: string }>(OTHERS[family], [database, last])).map(({ name }) => name)
    for (const { bytes } of await readTableSizes(session, family, { database, tables })) sum += Number(bytes ?? 0)
    last = tables.at(-1) ?? ''
    if (tables.length < PAGE) return sum
  }
}
