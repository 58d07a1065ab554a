import { access, chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { systemBackupClock } from '../../../backup/clock.ts'
import { restore } from '../../../backup/postgresql/restore.ts'
import {
  makeScratch,
  removeScratch,
  scratchPaths,
  type ScratchServer,
  startScratch,
} from '../../../backup/postgresql/scratch-server.ts'
import { type ArchivedServer, startArchived } from '../../support/backup/archived-server.ts'
import {
  momentOf,
  PREFIX,
  startAgent,
  testRepository,
  type TestRepository,
  trapDrills,
  valueOf,
} from '../../support/backup/agents.ts'
import { ADMIN, SERIES } from '../../support/postgresql/postgres.ts'
import { PATIENCE, SLOW } from '../../support/backup/quick.ts'

const { signal } = new AbortController()

/** Objects of a tenant that are never to run in a drill: each fails, or would reach another server. */
const HOSTILE = `
  CREATE FUNCTION public.boom(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''boom''; END';
  CREATE VIEW public.view AS SELECT public.boom(1) AS n;
  CREATE MATERIALIZED VIEW public.empty AS SELECT public.boom(1) AS n WITH NO DATA;
  CREATE TABLE public."Quoted ""name""" (n int);
  ALTER TABLE public."Quoted ""name""" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
  CREATE POLICY boom ON public."Quoted ""name""" USING (public.boom(n) = 1);
  INSERT INTO public."Quoted ""name""" VALUES (1);
  CREATE TABLE public.parts (n int) PARTITION BY RANGE (n);
  CREATE TABLE public.part PARTITION OF public.parts FOR VALUES FROM (0) TO (10);
  CREATE FUNCTION public.count() RETURNS bigint LANGUAGE sql AS 'SELECT public.boom(1)::bigint';
  CREATE SCHEMA "pg catalog";
  ALTER DATABASE postgres SET search_path = public, pg_catalog;
  ALTER DATABASE postgres SET default_transaction_read_only = on;
  CREATE DATABASE closed ALLOW_CONNECTIONS false;
`

/**
 * Objects of a tenant whose functions the planner calls when it reads the tables: it folds constants in predicates and expressions of indexes,
 * and in extended statistics. As a superuser each function would write `file`; it does so on the Unix socket of a scratch server, and on the live server for another role than the tenant's.
 */
const folding = (file: string): string => `
  CREATE ROLE tenant LOGIN;
  GRANT CREATE ON SCHEMA public TO tenant;
  SET ROLE tenant;
  CREATE FUNCTION public.escape() RETURNS int LANGUAGE plpgsql AS $$
    BEGIN
      IF pg_catalog.inet_server_port() IS NULL OR current_user <> 'tenant' THEN
        BEGIN EXECUTE 'RESET ROLE; SET SESSION AUTHORIZATION DEFAULT'; EXCEPTION WHEN OTHERS THEN NULL; END;
        BEGIN EXECUTE 'COPY (SELECT current_user) TO ''${file}'''; EXCEPTION WHEN OTHERS THEN NULL; END;
      END IF;
      RETURN 1;
    END $$;
  CREATE FUNCTION public.bait(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN public.escape(); END';
  CREATE TABLE public.predicate (n int);
  CREATE INDEX ON public.predicate (n) WHERE public.bait(1) > 0;
  CREATE TABLE public.expression (n int);
  CREATE INDEX ON public.expression ((n + public.bait(1)));
  CREATE TABLE public.statistic (n int);
  CREATE STATISTICS public.folded ON (n + public.bait(1)) FROM public.statistic;
  CREATE TABLE public.secret (n int);
  INSERT INTO public.secret VALUES (1);
  ALTER TABLE public.secret ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
  RESET ROLE;
`

/** Directory into which every user can write. */
async function openToAll(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'mooring-drill-'))
  await chmod(path, 0o777)
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

describe.each(SERIES)('PostgreSQL %s', (series) => {
  test('a drill gives functions that the planner calls no rights of the administrator', SLOW, async () => {
    await using open = await openToAll()
    const file = join(open.path, 'escaped')
    await using kept = await testRepository()
    await using server = await startArchived(series)
    const client = await server.client()
    await client.query(folding(file))
    await client.query('ALTER DATABASE postgres CONNECTION LIMIT 0')
    await using agent = startAgent(server, { ...kept, schedule: { drillMs: 3_600_000 } })
    await expect
      .poll(() => agent.state(), PATIENCE)
      .toMatchObject({ drillError: null, lastVerifiedRestore: expect.any(String) as string })
    await expect(access(file)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('a drill ends at its limit, whatever the planner calls', SLOW, async () => {
    await using kept = await testRepository()
    await using server = await startArchived(series)
    await trapDrills(await server.client())
    await using agent = startAgent(server, { ...kept, schedule: { drillMs: 3_600_000, drillLimitMs: 5_000 } })
    await expect.poll(() => agent.state().drillError, PATIENCE).toBe('the drill was ended after its limit of 5 s')
  })

  test('a drill reads the rows of all tables, and runs nothing of a tenant', SLOW, async () => {
    await using kept = await testRepository()
    await using server = await startArchived(series)
    const client = await server.client()
    // Statements of one text form one transaction, which a database cannot be created in.
    for (const statement of HOSTILE.split(/;\n/).filter((text) => text.trim() !== '')) await client.query(statement)
    await using agent = startAgent(server, { ...kept, schedule: { drillMs: 3_600_000 } })
    await expect
      .poll(() => agent.state(), PATIENCE)
      .toMatchObject({ drillError: null, lastVerifiedRestore: expect.any(String) as string })
    expect(agent.state().backups[0]?.lastVerifiedRestore).toBe(agent.state().lastVerifiedRestore)
  })
})

describe('a drill that compares', () => {
  let kept: TestRepository
  let server: ArchivedServer
  beforeAll(async () => {
    kept = await testRepository()
    server = await startArchived('15')
    const client = await server.client()
    await client.query(`CREATE DATABASE tenant`)
    const tenant = await server.client('tenant')
    await tenant.query(
      `CREATE TABLE orders AS SELECT n, md5(n::text) AS text, now() AS at, n::money AS price FROM generate_series(1, 3000) n`,
    )
    await tenant.query(`CREATE TABLE empty (n int)`)
    await tenant.query(`CREATE UNLOGGED TABLE unlogged AS SELECT 1 AS n`)
    await tenant.query(`ALTER DATABASE tenant SET datestyle = 'German'`)
    return async () => {
      await server[Symbol.asyncDispose]()
      await kept[Symbol.asyncDispose]()
    }
  }, SLOW.timeout)

  test('finds the tables as they were in the live server, while it is written to', SLOW, async () => {
    const writer = await server.client('tenant')
    const writing = new AbortController()
    const written = (async () => {
      while (!writing.signal.aborted) {
        await writer.query(`UPDATE orders SET text = md5(random()::text) WHERE n % 7 = 0`)
        await writer.query('SELECT pg_sleep(0.02)')
      }
    })()
    await using agent = startAgent(server, { ...kept, schedule: { drillMs: 3_600_000 } })
    await expect.poll(() => agent.state().lastVerifiedRestore, PATIENCE).not.toBeNull()
    writing.abort()
    await written
    expect(agent.state()).toMatchObject({ drillError: null, drillReport: { tables: 3, rows: 3000, compared: 2 } })
  })

  test('fails, and names the table, when a row is missing in the restored server', SLOW, async () => {
    // The live server gets a row that is not in its log: what a restore would lose.
    const lossy = async (database?: string) => {
      const client = await server.files.connect(database)
      const query = client.query.bind(client) as (...given: unknown[]) => Promise<unknown>
      const first = async (...given: unknown[]): Promise<unknown> => {
        const text = given[0]
        if (typeof text !== 'string' || !text.startsWith('BEGIN ISOLATION')) return query(...given)
        return query('BEGIN; DELETE FROM public.orders WHERE n = 1')
      }
      return Object.assign(client, { query: first })
    }
    await using agent = startAgent(
      { ...server, files: { ...server.files, connect: lossy } },
      {
        ...kept,
        prefix: 'database-2',
        schedule: { drillMs: 3_600_000 },
      },
    )
    await expect
      .poll(() => agent.state().drillError, PATIENCE)
      .toBe(
        'table public.orders of database tenant differs from the original, which had 2999 rows: the restored server has 3000 rows',
      )
    expect(agent.state()).toMatchObject({ lastVerifiedRestore: null, drillReport: null })
  })
})

describe('the scratch server of a drill', () => {
  let kept: TestRepository
  let server: ArchivedServer
  let scratch: ScratchServer
  let paths: ReturnType<typeof scratchPaths>
  beforeAll(async () => {
    kept = await testRepository()
    server = await startArchived('15')
    paths = scratchPaths(join(server.files.scratchDirectory, 'one'))
    await mkdir(paths.root, { mode: 0o700 })
    await makeScratch({ paths, server: server.files })
    const agent = startAgent(server, kept)
    await agent.archiving()
    const time = await momentOf(await server.client())
    await agent.reaches(time)
    await agent.close()
    await restore({ ...kept, prefix: PREFIX, time, into: paths.data, signal })
    // Settings of the restored server do not count.
    await writeFile(
      join(paths.data, 'postgresql.auto.conf'),
      `${await readFile(join(paths.data, 'postgresql.auto.conf'), 'utf8')}
      listen_addresses = '*'\narchive_mode = 'on'\narchive_command = 'touch escaped'\nmax_logical_replication_workers = '4'\n`,
    )
    scratch = await startScratch({ server: server.files, paths, clock: systemBackupClock, signal })
    return async () => {
      await scratch[Symbol.asyncDispose]()
      await removeScratch(paths.root)
      await server[Symbol.asyncDispose]()
      await kept[Symbol.asyncDispose]()
    }
  }, SLOW.timeout)

  const pidOf = async (): Promise<string> => (await readFile(join(paths.data, 'postmaster.pid'), 'utf8')).split('\n')[0] ?? ''

  test('listens on a socket in a private directory alone', async () => {
    const client = await scratch.connect('postgres')
    const settings = await client.query<{ name: string; setting: string }>(
      `SELECT name, setting FROM pg_settings WHERE name = ANY ($1) ORDER BY name`,
      [['archive_mode', 'listen_addresses', 'max_logical_replication_workers', 'max_wal_senders']],
    )
    expect(settings.rows.map(({ setting }) => setting)).toEqual(['off', '', '0', '0'])
    expect((await readFile(`/proc/${await pidOf()}/cmdline`, 'utf8')).split('\0')).toContain('shared_preload_libraries=')
    await client.end()
    for (const path of [paths.root, paths.data]) expect((await stat(path)).mode & 0o777).toBe(0o700)
    expect((await stat(join(paths.data, '.s.PGSQL.5432'))).mode & 0o077).toBe(0)
  })

  test("runs as the user of the database's server, without a secret on its command line", async () => {
    const pid = await pidOf()
    const { uid } = server.files.program.user ?? { uid: process.getuid?.() }
    expect(await readFile(`/proc/${pid}/status`, 'utf8')).toMatch(new RegExp(`^Uid:\\t${uid ?? ''}\\t${uid ?? ''}\\t`, 'm'))
    for (const file of ['cmdline', 'environ'])
      expect(await readFile(`/proc/${pid}/${file}`, 'utf8')).not.toContain(ADMIN.password)
  })

  test('does not write for the sessions of a drill', async () => {
    const client = await scratch.connect('postgres')
    await expect(client.query('CREATE TABLE t ()')).rejects.toMatchObject({ code: '25006' })
    expect(await valueOf(client, 'SHOW search_path')).toBe('pg_catalog')
    await client.end()
  })
})
