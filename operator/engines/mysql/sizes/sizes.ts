import { kindOf, type MysqlFamily } from '../catalog.ts'
import type { Connection, Session } from '../connection.ts'
import { Errno, errnoOf } from '../errors.ts'
import { createHiddenViews, VIEW_TEXTS } from './hidden-views.ts'
import { bounded, listTables, readTableSizes, sumOf, type TableSize, unlessHidden } from './tables.ts'

/** Bytes that each object counts beyond its content, so that the size limit also bounds the number of files. */
const OBJECT_BYTES = 8_192

/** Returns bytes on disk by tenant. `busy`: only databases that have a session, or had one at the previous call. */
type ReadSizes = (which: 'all' | 'busy') => Promise<ReadonlyMap<string, number>>

/** InnoDB files of one database. */
interface Files {
  bytes: number
  /** Names of the tables that have a file of their own. */
  readonly tables: Set<string>
}

/**
 * Creates the function that measures databases. While a tenant's lock hides the tables of a database, its InnoDB files are read, and all else
 * counts with the size that was read last.
 */
export function createSizes({ watch }: Connection, family: MysqlFamily): ReadSizes {
  /** Names of tenants that had a session at the previous call. Such a session may have written after that call and ended. */
  let presentBefore: ReadonlySet<string> = new Set()
  /** Bytes outside of files of InnoDB by tenant, as read last. */
  let othersBefore: ReadonlyMap<string, number> = new Map()
  const hiddenViews = createHiddenViews(watch)

  return async function readSizes(which) {
    const sessions = await readSessions(watch)
    const busy = new Set(sessions.filter((session) => session.busy).map(({ name }) => name))
    const present = new Set(sessions.map(({ name }) => name))
    const databases = await watch.query<{ name: string }>('SELECT SCHEMA_NAME AS name FROM information_schema.SCHEMATA')
    const names = databases
      .map(({ name }) => name)
      .filter((name) => kindOf(name) === 'tenant' && (which === 'all' || present.has(name) || presentBefore.has(name)))
    presentBefore = present
    if (names.length === 0) return new Map()
    const files = await readFiles(watch, family)
    const sizes = new Map<string, number>()
    const existing = new Set(databases.map(({ name }) => name))
    const others = new Map([...othersBefore].filter(([name]) => existing.has(name)))
    for (const name of names) {
      const own = files.get(name) ?? { bytes: 0, tables: new Set() }
      // Reading other objects opens tables, so databases without an active session are left out.
      if (which === 'all' || busy.has(name)) {
        const bytes = await unlessHidden(async () => {
          const visible = await readOther(watch, family, { name, files: own })
          return family === 'mariadb' ? visible : visible + (await hiddenViews.read(name, which))
        })
        if (bytes !== undefined) others.set(name, bytes)
      }
      sizes.set(name, own.bytes + (others.get(name) ?? 0))
    }
    othersBefore = others
    hiddenViews.retain(existing)
    return sizes
  }
}

interface TenantSession {
  readonly name: string
  /** Whether the session was active within the last 30 s, by its own clock. */
  readonly busy: 0 | 1
}

async function readSessions(session: Session): Promise<readonly TenantSession[]> {
  return session.query<TenantSession>(
    `SELECT USER AS name, COMMAND <> 'Sleep' OR TIME < 30 AS busy FROM information_schema.PROCESSLIST
     WHERE USER <> SUBSTRING_INDEX(CURRENT_USER(), '@', 1)`,
  )
}

/** Queries for InnoDB's files, which wait for no lock of a tenant: of MySQL 8.0, and of MySQL 5.7 and MariaDB. */
const SPACES: readonly string[] = ['INNODB_TABLESPACES', 'INNODB_SYS_TABLESPACES'].map(
  (table) =>
    `SELECT NAME AS name, GREATEST(FILE_SIZE, ALLOCATED_SIZE) AS bytes FROM information_schema.${table} WHERE NAME LIKE '%/%'`,
)

async function readFiles(session: Session, family: MysqlFamily): Promise<ReadonlyMap<string, Files>> {
  const found = new Map<string, Files>()
  for (const { name, bytes } of await readSpaces(session, family)) {
    // A file is named `database/table`, that of a partition `database/table#p#partition`.
    const [database = '', file = ''] = name.split('/')
    const files = found.get(database) ?? { bytes: 0, tables: new Set() }
    files.bytes += Number(bytes)
    files.tables.add(tableOf(file))
    found.set(database, files)
  }
  return found
}

/** Returns the table of a file (MySQL manual, "Mapping of Identifiers to File Names"): characters other than letters and digits are encoded. */
const tableOf = (file: string): string =>
  (file.split(/#p#/i)[0] ?? '').replaceAll(/@([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))

interface Space {
  readonly name: string
  readonly bytes: string | number
}

async function readSpaces(session: Session, family: MysqlFamily): Promise<readonly Space[]> {
  const [latest = '', former = ''] = SPACES
  if (family === 'mariadb') return session.query<Space>(former)
  try {
    return await session.query<Space>(latest)
  } catch (error) {
    if (errnoOf(error) !== Errno.unknownTable) throw error
    return session.query<Space>(former)
  }
}

/**
 * Reads the bytes outside InnoDB files: tables of other engines, tables in the shared tablespace, and programs. Opens only tables without an
 * InnoDB file, because opening waits for a statement that creates or alters the table. Opens no view: a view opens all views that it reads, so
 * that 16 nested views take 6 GiB of memory or end the server.
 */
async function readOther(
  session: Session,
  family: MysqlFamily,
  { name, files }: { readonly name: string; readonly files: Files },
): Promise<number> {
  const others = (await listTables(session, name)).filter((table) => !files.tables.has(table))
  return (await readTables(session, family, { name, tables: others })) + (await readPrograms(session, family, name))
}

interface Named {
  /** Name of the database. */
  readonly name: string
  readonly tables: readonly string[]
}

async function readTables(session: Session, family: MysqlFamily, { name, tables }: Named): Promise<number> {
  const rows = await readTableSizes(session, family, { database: name, tables })
  // The name of an InnoDB table with non-ASCII letters is not recognized in its file name, but the bytes of the file are counted already.
  const isCounted = ({ name: table, engine }: TableSize): boolean => engine === 'InnoDB' && /[^ -~]/.test(table)
  return rows.filter((row) => !isCounted(row)).reduce((sum, { bytes }) => sum + OBJECT_BYTES + Number(bytes ?? 0), 0)
}

/**
 * Texts of programs: those of routines and, from MySQL 8.0, all others are in tables of the server; triggers and views have files. A view
 * has its text as written, as parsed, and in UTF-8. A condition on the schema of a trigger, not of its table, would read all databases.
 */
const PROGRAMS = [
  { length: 'LENGTH(ROUTINE_DEFINITION)', source: 'ROUTINES WHERE ROUTINE_SCHEMA' },
  { length: 'LENGTH(ACTION_STATEMENT)', source: 'TRIGGERS WHERE EVENT_OBJECT_SCHEMA' },
  { length: `${VIEW_TEXTS} * LENGTH(VIEW_DEFINITION)`, source: 'VIEWS WHERE TABLE_SCHEMA' },
]
  .map(
    ({ length, source }) => `SELECT SUM(COALESCE(${length}, 0) + ${OBJECT_BYTES}) AS bytes FROM information_schema.${source} = ?`,
  )
  .join(' UNION ALL ')

/** Bound of the time of reading programs, in ms: the server waits for each lock of a tenant anew. */
const PROGRAMS_MS = 200
/** Bound for events: no tenant can lock their list, and 100,000 of them take half a second. */
const EVENTS_MS = 2_000

/** Queries for the texts of events: of MySQL 5.7 and MariaDB, whose list would read the events of all databases, and of MySQL 8.0. */
const EVENTS = [
  ['LENGTH(body) + LENGTH(body_utf8) + LENGTH(comment)', 'mysql.event WHERE db'],
  ['LENGTH(EVENT_DEFINITION) + LENGTH(EVENT_COMMENT)', 'information_schema.EVENTS WHERE EVENT_SCHEMA'],
].map(([length, source]) =>
  bounded(EVENTS_MS, `SELECT SUM(COALESCE(${length}, 0) + ${OBJECT_BYTES}) AS bytes FROM ${source} = ?`),
)

async function readEvents(session: Session, family: MysqlFamily, name: string): Promise<number> {
  const [former = '', latest = ''] = EVENTS.map((query) => query[family])
  try {
    return await sumOf(session, former, [name])
  } catch (error) {
    if (errnoOf(error) !== Errno.noSuchTable) throw error
    return sumOf(session, latest, [name])
  }
}

const BOUNDED = bounded(PROGRAMS_MS, PROGRAMS)

async function readPrograms(session: Session, family: MysqlFamily, name: string): Promise<number> {
  return (await sumOf(session, BOUNDED[family], [name, name, name])) + (await readEvents(session, family, name))
}
