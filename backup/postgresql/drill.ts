import { randomBytes } from 'node:crypto'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { MooringError } from '../../shared/errors.ts'
import type { BackupClock } from '../clock.ts'
import type { Repository } from '../repository/port.ts'
import type { Manifest } from './catalog/manifest.ts'
import type { RestorePlan } from './catalog/restorable.ts'
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

/**
 * Restores a plan's time into a scratch directory, starts a server there, and reads every row of every table. Removes the directory afterwards.
 * @throws MooringError when the backup cannot be restored, is incomplete, the volume has too little space, or the drill exceeds its time limit
 */
export async function drill(deps: DrillDeps, plan: RestorePlan): Promise<void> {
  const limit = AbortSignal.timeout(deps.limitMs)
  try {
    await drillWithin({ ...deps, signal: AbortSignal.any([deps.signal, limit]) }, plan)
  } catch (error) {
    deps.signal.throwIfAborted()
    if (!limit.aborted) throw error
    throw new MooringError(DRILL_FAILED, `the drill was ended after its limit of ${deps.limitMs / 1_000} s`)
  }
}

async function drillWithin(deps: Omit<DrillDeps, 'limitMs'>, plan: RestorePlan): Promise<void> {
  const { repository, prefix, server, clock, signal } = deps
  await removeLeftOver(server.scratchDirectory)
  await checkSpace(server.scratchDirectory, plan, MAX_SHARE)
  const root = join(server.scratchDirectory, randomBytes(8).toString('hex'))
  const paths = scratchPaths(root)
  try {
    await mkdir(root, { mode: 0o700 })
    await makeScratch({ paths, server })
    await restore({ repository, prefix, time: new Date(plan.target), into: paths.data, signal })
    await using scratch = await startScratch({ server, paths, clock, signal })
    await requireDatabases(scratch, plan.base, server)
    await readEverything(scratch, signal)
  } finally {
    await removeScratch(root)
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
async function readEverything(scratch: ScratchServer, signal: AbortSignal): Promise<void> {
  for (const database of await databasesOf(await scratch.connect('postgres'))) {
    const client = await scratch.connect(database)
    try {
      // An index scan could count rows without reading them.
      await client.query('SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off')
      for (const { schema, name } of await tablesOf(client)) {
        signal.throwIfAborted()
        await client.query(`SELECT pg_catalog.count(*) FROM ONLY ${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`)
      }
    } catch (error) {
      signal.throwIfAborted()
      throw new MooringError(DRILL_FAILED, `a table of database ${database} cannot be read`, { cause: error })
    } finally {
      await client.end()
    }
  }
}

/** Returns the tables, materialized views and TOAST tables of a database. */
async function tablesOf(client: pg.Client): Promise<readonly { schema: string; name: string }[]> {
  const { rows } = await client.query<{ schema: string; name: string }>(
    `SELECT n.nspname AS schema, c.relname AS name FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
      WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,m,t}'::pg_catalog."char"[])
        AND (c.relkind OPERATOR(pg_catalog.<>) 'm' OR c.relispopulated) ORDER BY c.oid`,
  )
  return rows
}
