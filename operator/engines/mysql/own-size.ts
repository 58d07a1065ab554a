import type { MysqlFamily } from './catalog.ts'
import type { Connection, Session } from './connection.ts'
import { Errno, errnoOf } from './errors.ts'

/** Returns the bytes on disk of a tenant's database; undefined when there is none. */
type ReadSize = (name: string) => Promise<number | undefined>

/**
 * Creates the function that measures the database of a server of one tenant. The server adds the sizes up: without a size limit, a tenant
 * may create any number of tables and views, and their list would not fit into the operator's memory.
 *
 * The size leaves out the text of views, triggers, routines and events, which on MySQL 8.0 needs one statement per view, and tables that a tenant put
 * in the shared tablespace of MySQL. While a tenant's lock hides the tables, those of engines other than InnoDB count with the size that was read last.
 */
export function createOwnSize({ watch }: Connection, family: MysqlFamily): ReadSize {
  /** Bytes outside of files of InnoDB by tenant, as read last. */
  const othersBefore = new Map<string, number>()

  return async function readSize(name) {
    const [database] = await watch.query('SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?', [name])
    if (!database) {
      othersBefore.delete(name)
      return undefined
    }
    const bytes = await readFiles(watch, family, name)
    const others = (await readOthers(watch, family, name)) ?? othersBefore.get(name) ?? 0
    othersBefore.set(name, others)
    return bytes + others
  }
}

interface Sum {
  /** NULL for no rows. */
  readonly bytes: string | number | null
}

async function sumOf(session: Session, text: string, values: readonly unknown[]): Promise<number> {
  const [row] = await session.query<Sum>(text, values)
  return Number(row?.bytes ?? 0)
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

/** Tables of other engines. Their sizes need each table to be opened, and the server waits for each lock of a tenant anew. */
const OTHERS = `SELECT SUM(DATA_LENGTH + INDEX_LENGTH) AS bytes FROM information_schema.TABLES
  WHERE TABLE_SCHEMA = ? AND TABLE_TYPE = 'BASE TABLE' AND ENGINE <> 'InnoDB'`
/** Bound of the time of reading them, in ms. */
const OTHERS_MS = 1_000
const BOUNDED: Readonly<Record<MysqlFamily, string>> = {
  mariadb: `SET STATEMENT max_statement_time=${OTHERS_MS / 1000} FOR ${OTHERS}`,
  mysql: OTHERS.replace('SELECT', `SELECT /*+ MAX_EXECUTION_TIME(${OTHERS_MS}) */`),
}

/** Returns undefined when the server refuses or the time runs out. */
async function readOthers(session: Session, family: MysqlFamily, name: string): Promise<number | undefined> {
  try {
    return await sumOf(session, BOUNDED[family], [name])
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}
