import { randomBytes } from 'node:crypto'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { MooringError } from '../../shared/errors.ts'
import type { BackupClock } from '../clock.ts'
import type { Repository } from '../repository/port.ts'
import type { DrillReport } from '../agent-state.ts'
import type { Manifest } from './catalog/manifest.ts'
import type { RestorePlan } from './catalog/restorable.ts'
import { differenceFrom, type Facts, isComparable } from './facts.ts'
import { restore } from './restore.ts'
import { makeScratch, removeScratch, scratchPaths, type ScratchServer, startScratch } from './scratch-server.ts'
import type { PostgresqlFiles } from './server.ts'
import { checkSpace } from './space.ts'

export const DRILL_FAILED = 'drill_failed'

/** Share of the free space that a drill may take: the volume may be that of the database, which must not run out of space. */
const MAX_SHARE = 0.8

export interface DrillDeps {
  readonly repository: Repository
  readonly prefix: string
  readonly server: PostgresqlFiles
  readonly clock: BackupClock
  readonly signal: AbortSignal
  /** Maximum time in ms. */
  readonly limitMs: number
}

export interface DrillTarget {
  readonly plan: RestorePlan
  /** Rows of the live server, at or before the plan's time: the restore ends there, and the rows are compared. */
  readonly facts?: Facts | undefined
}

/**
 * Restores a plan's time into a scratch directory, starts a server there, compares it with the facts, and reads every row of every table. Removes the
 * directory afterwards.
 * @throws MooringError when the backup cannot be restored, is incomplete, the volume has too little space, or the drill exceeds its time limit
 */
export async function drill(deps: DrillDeps, target: DrillTarget): Promise<DrillReport> {
  const limit = AbortSignal.timeout(deps.limitMs)
  try {
    return await drillWithin({ ...deps, signal: AbortSignal.any([deps.signal, limit]) }, target)
  } catch (error) {
    deps.signal.throwIfAborted()
    if (!limit.aborted) throw error
    throw new MooringError(DRILL_FAILED, `the drill was ended after its limit of ${deps.limitMs / 1_000} s`)
  }
}

async function drillWithin(deps: Omit<DrillDeps, 'limitMs'>, { plan, facts }: DrillTarget): Promise<DrillReport> {
  const { repository, prefix, server, clock, signal } = deps
  await removeLeftOver(server.scratchDirectory)
  await checkSpace(server.scratchDirectory, plan, MAX_SHARE)
  const root = join(server.scratchDirectory, randomBytes(8).toString('hex'))
  const paths = scratchPaths(root)
  try {
    await mkdir(root, { mode: 0o700 })
    await makeScratch({ paths, server })
    await restore({ repository, prefix, time: new Date(plan.target), into: paths.data, position: facts?.position, signal })
    await using scratch = await startScratch({ server, paths, clock, signal })
    await requireDatabases(scratch, plan.base, server)
    const compared = facts ? await compare(scratch, facts, signal) : 0
    return { ...(await readEverything(scratch, signal)), compared }
  } finally {
    await removeScratch(root)
  }
}

/** Compares the restored server with facts. @returns the number of equal tables @throws MooringError {@link DRILL_FAILED} */
async function compare(scratch: ScratchServer, facts: Facts, signal: AbortSignal): Promise<number> {
  const client = await scratch.connect(facts.database)
  try {
    if (!(await isComparable(client, facts, scratch.nextTransaction))) return 0
    const difference = await differenceFrom(client, facts, signal)
    if (difference !== undefined) throw new MooringError(DRILL_FAILED, difference)
    return facts.tables.length
  } finally {
    await client.end()
  }
}

async function removeLeftOver(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  for (const name of await readdir(directory)) await removeScratch(join(directory, name))
}

/** Checks that the restored server has the databases of the backup. @throws MooringError {@link DRILL_FAILED} */
async function requireDatabases(scratch: ScratchServer, base: Manifest, server: PostgresqlFiles): Promise<void> {
  const found = new Set(await databasesOf(await scratch.connect('postgres')))
  const missing = base.databases.map(({ name }) => name).filter((name) => !found.has(name))
  if (missing.length === 0) return
  // A database may have been dropped since.
  const present = new Set(await databasesOf(await server.connect()))
  const lost = missing.filter((name) => present.has(name))
  if (lost.length > 0) throw new MooringError(DRILL_FAILED, `the restored server lacks databases: ${lost.join(', ')}`)
}

async function databasesOf(client: pg.Client): Promise<readonly string[]> {
  try {
    const { rows } = await client.query<{ name: string }>('SELECT datname AS name FROM pg_catalog.pg_database WHERE datallowconn')
    return rows.map(({ name }) => name)
  } finally {
    await client.end()
  }
}

/** Reads all rows, one table after the other. Leaves foreign tables and views out: to read them would connect to other servers or run queries of the tenant. */
async function readEverything(scratch: ScratchServer, signal: AbortSignal): Promise<Pick<DrillReport, 'tables' | 'rows'>> {
  let [tables, rows] = [0, 0]
  for (const database of await databasesOf(await scratch.connect('postgres'))) {
    const client = await scratch.connect(database)
    try {
      // An index scan could count rows without reading them.
      await client.query('SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off')
      for (const table of await tablesOf(client)) {
        signal.throwIfAborted()
        const count = await readRows(client, table)
        tables += table.own ? 1 : 0
        rows += table.own ? count : 0
      }
    } catch (error) {
      signal.throwIfAborted()
      throw new MooringError(DRILL_FAILED, `a table of database ${database} cannot be read`, { cause: error })
    } finally {
      await client.end()
    }
  }
  return { tables, rows }
}

async function readRows(client: pg.Client, { schema, name }: ReadTable): Promise<number> {
  const table = `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`
  const { rows } = await client.query<{ count: string }>(`SELECT pg_catalog.count(*) AS count FROM ONLY ${table}`)
  return Number(rows[0]?.count)
}

interface ReadTable {
  readonly schema: string
  readonly name: string
  /** Whether it is a table of the tenant, neither one of the system nor a part of another. */
  readonly own: boolean
}

/** Returns the tables, materialized views and TOAST tables of a database. */
async function tablesOf(client: pg.Client): Promise<readonly ReadTable[]> {
  const { rows } = await client.query<ReadTable>(
    `SELECT n.nspname AS schema, c.relname AS name,
        n.nspname OPERATOR(pg_catalog.<>) ALL ('{pg_catalog,information_schema,pg_toast}'::pg_catalog.name[]) AS own FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
      WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,m,t}'::pg_catalog."char"[])
        AND (c.relkind OPERATOR(pg_catalog.<>) 'm' OR c.relispopulated) ORDER BY c.oid`,
  )
  return rows
}
