import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { drizzle } from 'drizzle-orm/node-postgres'
import { migrate } from 'drizzle-orm/node-postgres/migrator'
import knex from 'knex'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { postgresqlBench } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import type { Tenant } from '../../../operator/engines/engine.ts'
import { postgresql } from '../../../operator/engines/postgresql/postgresql.ts'
import { patient } from '../../support/patience.ts'

const run = promisify(execFile)
const DEBIAN = '/usr/lib/postgresql'

/** Returns the path of a program: from the newest PostgreSQL package of Debian, else from PATH. */
async function tool(name: string): Promise<string> {
  const packaged = (await readdir(DEBIAN).catch(() => []))
    .toSorted((a, b) => Number(b) - Number(a))
    .map((series) => join(DEBIAN, series, 'bin'))
  for (const directory of [...packaged, ...(process.env.PATH ?? '').split(':')]) {
    const file = join(directory, name)
    if (await stat(file).catch(() => undefined)) return file
  }
  throw new Error(
    `${name} is not on this machine: apt-get install postgresql-client${name === 'pgbench' ? ' postgresql-contrib' : ''}`,
  )
}

describe.each(SERIES)('PostgreSQL %s: a tenant can use', (series) => {
  const bench = postgresqlBench(series)

  const uriOf = ({ name, password }: Tenant): string => {
    const { host, port } = bench.server.target
    return postgresql.uri({ host, port, name, password, caFile: undefined })
  }

  test('pg_dump, and pg_restore into the database of another tenant', { timeout: patient(240_000) }, async () => {
    const from = await bench.tenant('dumped')
    const to = await bench.tenant('restored')
    const client = await bench.as(from)
    await client.query(`
      CREATE SCHEMA app; CREATE TABLE app.item (id serial PRIMARY KEY, name text, added timestamptz DEFAULT now());
      INSERT INTO app.item (name) SELECT md5(g::text) FROM generate_series(1, 500) g;
      CREATE VIEW public.names AS SELECT name FROM app.item; CREATE INDEX ON app.item (name); SELECT lo_from_bytea(0, 'large');
      CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
      CREATE TRIGGER t BEFORE INSERT ON app.item FOR EACH ROW EXECUTE FUNCTION public.f();
      COMMENT ON TABLE app.item IS 'things'`)
    const directory = await mkdtemp(join(tmpdir(), 'dump-'))
    try {
      const file = join(directory, 'dump')
      await run(await tool('pg_dump'), ['-Fc', '--no-owner', '--no-privileges', '-f', file, uriOf(from)])
      await run(await tool('pg_restore'), ['--exit-on-error', '--no-owner', '--no-privileges', '-d', uriOf(to), file])
      // Restores the full dump over the dumped database.
      await run(await tool('pg_dump'), ['-Fc', '-f', file, uriOf(from)])
      await run(await tool('pg_restore'), ['--exit-on-error', '--clean', '--if-exists', '-d', uriOf(from), file])
    } finally {
      await rm(directory, { recursive: true })
    }
    for (const tenant of [from, to]) {
      const { rows } = await (await bench.as(tenant)).query('SELECT count(*)::int AS names FROM public.names')
      expect(rows).toEqual([{ names: 500 }])
    }
  })

  test('pgbench for initialization and a short run', { timeout: patient(240_000) }, async () => {
    const uri = uriOf(await bench.tenant('benched'))
    await run(await tool('pgbench'), ['-i', '-q', uri])
    const { stdout } = await run(await tool('pgbench'), ['-c', '4', '-t', '5', uri])
    expect(stdout).toContain('actually processed: 20/20')
  })

  test('the list commands of psql', async () => {
    const uri = uriOf(await bench.tenant('listed'))
    for (const command of ['\\l', '\\du', '\\dn+', '\\dt', '\\dx', '\\df', '\\dp', '\\conninfo']) {
      await run(await tool('psql'), ['-v', 'ON_ERROR_STOP=1', '-X', '-c', command, uri])
    }
  })

  test('DROP SCHEMA public CASCADE and CREATE SCHEMA public', async () => {
    const client = await bench.as(await bench.tenant('emptied'))
    await client.query('CREATE TABLE t (n int)')
    await client.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    await client.query('GRANT ALL ON SCHEMA public TO public; CREATE TABLE t (n int); INSERT INTO t VALUES (1)')
    await client.query('DROP OWNED BY CURRENT_USER; SELECT 1')
    await client.query('CREATE SCHEMA public; CREATE TABLE t (n int)')
    await client.query('VACUUM ANALYZE t')
    await client.query('REINDEX TABLE t')
    await bench.admin.verify({ name: 'emptied', password: 'password-of-emptied' })
  })

  test('migrations and rollbacks of knex', async () => {
    const connection = uriOf(await bench.tenant('knexed'))
    const migrations = [
      {
        name: '1_users',
        up: (db: knex.Knex) => db.schema.createTable('users', (table) => table.increments().primary()),
        down: (db: knex.Knex) => db.schema.dropTable('users'),
      },
      {
        name: '2_names',
        up: (db: knex.Knex) => db.schema.alterTable('users', (table) => table.string('name').notNullable().unique()),
        down: (db: knex.Knex) => db.schema.alterTable('users', (table) => table.dropColumn('name')),
      },
    ]
    const migrationSource: knex.Knex.MigrationSource<(typeof migrations)[number]> = {
      getMigrations: async () => migrations,
      getMigrationName: ({ name }) => name,
      getMigration: async ({ up, down }) => ({ up, down }),
    }
    const db = knex({ client: 'pg', connection, migrations: { migrationSource } })
    try {
      await db.migrate.latest()
      await db('users').insert({ name: 'ada' })
      expect(await db('users').select('name')).toEqual([{ name: 'ada' }])
      await db.migrate.rollback(undefined, true)
      expect(await db.schema.hasTable('users')).toBe(false)
    } finally {
      await db.destroy()
    }
  })

  test('migrations of drizzle', async () => {
    const migrationsFolder = await mkdtemp(join(tmpdir(), 'drizzle-'))
    const client = await bench.as(await bench.tenant('drizzled'))
    try {
      const entries = ['0000_users', '0001_names'].map((tag, idx) => ({
        idx,
        version: '7',
        when: 1700000000000 + idx,
        tag,
        breakpoints: true,
      }))
      await mkdir(join(migrationsFolder, 'meta'))
      await writeFile(
        join(migrationsFolder, 'meta/_journal.json'),
        JSON.stringify({ version: '7', dialect: 'postgresql', entries }),
      )
      await writeFile(join(migrationsFolder, '0000_users.sql'), 'CREATE TABLE "users" ("id" serial PRIMARY KEY);')
      await writeFile(
        join(migrationsFolder, '0001_names.sql'),
        'ALTER TABLE "users" ADD COLUMN "name" text;--> statement-breakpoint\nCREATE INDEX "by_name" ON "users" ("name");',
      )
      await migrate(drizzle({ client }), { migrationsFolder })
      await migrate(drizzle({ client }), { migrationsFolder })
    } finally {
      await rm(migrationsFolder, { recursive: true })
    }
    const { rows } = await client.query('SELECT count(*)::int AS applied FROM drizzle.__drizzle_migrations')
    expect(rows).toEqual([{ applied: 2 }])
  })

  test('a pool of 10 busy connections', async () => {
    const pool = new pg.Pool({ connectionString: uriOf(await bench.tenant('pooled')), max: 10 })
    pool.on('error', () => undefined)
    const clients = await Promise.all(Array.from({ length: 10 }, () => pool.connect()))
    const answers = await Promise.all(clients.map((client) => client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')))
    expect(new Set(answers.map(({ rows }) => rows[0]?.pid)).size).toBe(10)
    for (const client of clients) client.release()
    await pool.end()
  })
})
