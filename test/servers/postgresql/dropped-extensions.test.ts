import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { DENIED, LIMITS, postgresqlBench, rejection } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import { SOON } from '../../support/patience.ts'
import type { Tenant } from '../../../operator/engines/engine.ts'

const run = promisify(execFile)

/** Returns a command of a section of docs/restore.md. */
async function commandOf(section: string, index: number): Promise<string> {
  const page = await readFile(new URL('../../../docs/restore.md', import.meta.url), 'utf8')
  const part = page.split(/^## /m).find((text) => text.startsWith(`${section}\n`)) ?? ''
  return [...part.matchAll(/```sh\n([\s\S]*?)```/g)][index]?.[1] ?? 'false'
}

const TRIGGER = 'mooring_create_extension'

describe.each(SERIES)('PostgreSQL %s: CREATE EXTENSION of a tenant', (series) => {
  const bench = postgresqlBench(series)

  const uriOf = ({ name, password }: Tenant): string => {
    const { host, port, ca } = bench.server.target
    return `postgresql://${name}:${password}@${host}:${port}/${name}${ca === undefined ? '' : '?sslmode=require'}`
  }

  /** Claims a tenant with extensions that are installed again when it drops them, as the watchdog and the reconciler do. */
  async function tenantWith(name: string, extensions: readonly string[]): Promise<Tenant> {
    const tenant = await bench.tenant(name)
    await bench.admin.installExtensions(name, extensions)
    let isOver = false
    async function watch(): Promise<void> {
      while (!isOver) {
        const [changed] = await bench.admin.findChangedExtensions(new Map([[name, extensions]]))
        if (changed !== undefined) await bench.admin.installExtensions(name, extensions)
        await new Promise((resolve) => setTimeout(resolve, SOON.interval))
      }
    }
    const watching = watch()
    onTestFinished(async () => {
      isOver = true
      await watching
    })
    return tenant
  }

  test('succeeds right after the tenant dropped the schema with its extensions, as migration tools do', async () => {
    const client = await bench.as(await tenantWith('migrating', ['citext', 'hstore']))
    await client.query('DROP SCHEMA public CASCADE')
    await client.query('CREATE SCHEMA public')
    await client.query(
      '-- CREATE EXTENSION ltree\nCREATE EXTENSION IF NOT EXISTS "citext"; /* create extension cube */ create extension if not exists HSTORE with schema public; CREATE TABLE t (c citext, h hstore)',
    )
    await client.query('DROP EXTENSION citext CASCADE')
    await client.query(`DO $$ BEGIN EXECUTE 'CREATE EXTENSION IF NOT EXISTS ' || quote_ident('citext'); END $$`)
    await client.query('ALTER TABLE t ADD COLUMN d citext')
  })

  test('is rejected at once within the transaction that dropped the extension', async () => {
    const client = await bench.as(await tenantWith('atomic', ['citext']))
    const error = await rejection(client.query('BEGIN; DROP EXTENSION citext; CREATE EXTENSION IF NOT EXISTS citext'))
    expect(error).toMatchObject({ code: DENIED, message: expect.stringContaining('installed again within seconds') as string })
    await client.query('ROLLBACK; CREATE TABLE t (c citext)')
  })

  test('names the call of the API also from a function, and leaves unclear statements and installed extensions to PostgreSQL', async () => {
    const tenant = await bench.tenant('asking')
    await bench.admin.installExtensions('asking', ['citext'])
    const client = await bench.as(tenant)
    await client.query(`CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS 'BEGIN CREATE EXTENSION hstore; END'`)
    expect(await rejection(client.query('SELECT f()'))).toMatchObject({
      ...{ code: DENIED, hint: expect.stringContaining('GET /v1/instances/{id}/extensions') as string },
      message:
        'permission denied to create extension "hstore": POST /v1/instances/{id}/extensions with the body {"name":"hstore"} installs it if the region allows it',
    })
    expect(await rejection(client.query('CREATE EXTENSION nosuch'))).toMatchObject({ code: series === '14' ? '58P01' : '0A000' })
    expect(await rejection(client.query('CREATE EXTENSION citext'))).toMatchObject({ code: '42710' })
    await client.query('SELECT 1 /* create extension hstore */; CREATE EXTENSION IF NOT EXISTS citext SCHEMA public')
  })

  test('is answered by a trigger that the tenant can neither remove nor change, and that has no rights', async () => {
    const client = await bench.as(await bench.tenant('mallory'))
    for (const attempt of [
      `DROP EVENT TRIGGER ${TRIGGER}`,
      `ALTER EVENT TRIGGER ${TRIGGER} DISABLE`,
      `COMMENT ON EVENT TRIGGER ${TRIGGER} IS 'dblink'`,
      `DROP FUNCTION pg_catalog.${TRIGGER}()`,
      `ALTER FUNCTION pg_catalog.${TRIGGER}() SECURITY DEFINER`,
      `ALTER FUNCTION pg_catalog.${TRIGGER}() SET search_path = public`,
      `CREATE OR REPLACE FUNCTION pg_catalog.${TRIGGER}() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'`,
      `ALTER EXTENSION plpgsql DROP EVENT TRIGGER ${TRIGGER}`,
      'DROP EXTENSION plpgsql CASCADE',
      'SET session_replication_role = replica',
    ]) {
      expect(await rejection(client.query(attempt)), attempt).toMatchObject({ code: DENIED })
    }
    await client.query('DROP OWNED BY mallory CASCADE')
    const { rows } = await client.query(
      `SELECT evtenabled, evtowner <> current_user::regrole AS others, prosecdef FROM pg_event_trigger JOIN pg_proc p ON p.oid = evtfoid`,
    )
    expect(rows).toEqual([{ evtenabled: 'O', others: true, prosecdef: false }])
  })

  test('is answered in spares, copies and databases of earlier versions, too', async () => {
    const model = await bench.tenant('model')
    await bench.admin.installExtensions('model', ['citext'])
    await bench.admin.claim({ name: 'copy', password: 'password-of-copy' }, LIMITS, { template: 'model' })
    await bench.settle(1)
    const root = await bench.server.client()
    const { rows } = await root.query<{ name: string }>(`SELECT datname AS name FROM pg_database WHERE datname LIKE 'pool%'`)
    const names = ['copy', ...rows.map(({ name }) => name)]
    expect(names).toHaveLength(2)
    const triggers = async (database: string) => {
      const client = await bench.server.client({ database })
      const found = await client.query<{ name: string }>('SELECT evtname AS name FROM pg_event_trigger')
      await client.end()
      return found.rows.map(({ name }) => name)
    }
    for (const name of names) expect(await triggers(name)).toEqual([TRIGGER])
    for (const database of names) {
      const client = await bench.server.client({ database })
      await client.query(
        `ALTER EXTENSION plpgsql DROP EVENT TRIGGER ${TRIGGER}; DROP EVENT TRIGGER ${TRIGGER};
        ALTER EXTENSION plpgsql DROP FUNCTION ${TRIGGER}(); DROP FUNCTION ${TRIGGER}()`,
      )
      await client.end()
    }
    // As after a start of the operator.
    const { postgresqlAdmin } = await import('../../../operator/engines/postgresql/postgresql.ts')
    await using admin = postgresqlAdmin(bench.server.target)
    expect(await admin.findChangedExtensions(new Map([['copy', []]]))).toEqual(['copy'])
    for (const name of names) expect(await triggers(name)).toEqual([TRIGGER])
    expect(model.name).toBe('model')
  })

  /** Returns a function that runs commands in a new directory. */
  async function makeShell() {
    const directory = await mkdtemp(join(tmpdir(), 'mooring-restore-'))
    onTestFinished(() => rm(directory, { recursive: true }))
    return (command: string, uri: string) =>
      run('bash', ['-eo', 'pipefail', '-c', command], { cwd: directory, env: { ...process.env, DATABASE_URL: uri } })
  }

  /** Connection string of the administrator. */
  const adminUri = (database: string): string => {
    const { user, password } = bench.server.target
    return uriOf({ name: database, password }).replace(database, user)
  }

  const restores: readonly (readonly [name: string, command: () => Promise<string>, isClean: boolean])[] = [
    ['pg_restore', () => commandOf('A restore', 0), false],
    ['pg_restore --clean', () => commandOf('A restore', 1), true],
    ['pg_restore --clean in one transaction', () => commandOf('In one transaction', 0), true],
    ['a script of pg_dump --clean in one transaction', () => commandOf('In one transaction', 1), true],
  ]

  test('is in no dump, and does not keep the commands of docs/restore.md from restoring all rows of another server', async () => {
    const root = await bench.server.client()
    await root.query('CREATE DATABASE elsewhere')
    const other = { name: 'elsewhere', uri: adminUri('elsewhere') }
    const source = await bench.server.client({ database: other.name })
    await source.query('CREATE EXTENSION citext; CREATE EXTENSION hstore')
    const rows = `CREATE TABLE t (c public.citext, h public.hstore); INSERT INTO t SELECT 'A' || n, 'a=>1' FROM generate_series(1, 100) n`
    await source.query(rows)
    const shell = await makeShell()
    await shell('pg_dump --format=custom --file=dump "$DATABASE_URL"', other.uri)
    await shell('pg_dump --clean --if-exists --no-owner --file=dump.sql "$DATABASE_URL"', other.uri)
    expect((await shell(await commandOf('Before: the extensions', 0), '')).stdout).toBe('citext\nhstore\n')
    const to = await tenantWith('restored', ['citext', 'hstore'])
    const client = await bench.as(to)
    for (const [name, command, isClean] of restores) {
      await client.query(isClean ? 'UPDATE t SET c = NULL, h = NULL' : 'SELECT 1')
      const { stderr } = await shell(await command(), uriOf(to))
      expect(stderr, name).not.toMatch(/error/i)
      const restored = await client.query(`SELECT count(*)::int AS n FROM t WHERE c LIKE 'a%' AND h -> 'a' = '1'`)
      expect(restored.rows, name).toEqual([{ n: 100 }])
    }
    expect((await shell('pg_dump "$DATABASE_URL"', uriOf(to))).stdout).not.toContain(TRIGGER)
  })

  test('is in public, and a command of docs/restore.md restores a dump that has the extension elsewhere', async () => {
    const root = await bench.server.client()
    await root.query('CREATE DATABASE apart')
    const source = await bench.server.client({ database: 'apart' })
    await source.query('CREATE SCHEMA extensions; CREATE EXTENSION citext SCHEMA extensions')
    await source.query(`CREATE TABLE t (c extensions.citext DEFAULT 'a'::extensions.citext); INSERT INTO t VALUES ('A')`)
    const shell = await makeShell()
    await shell('pg_dump --format=custom --file=dump "$DATABASE_URL"', adminUri('apart'))
    const to = await tenantWith('moved', ['citext'])
    await shell(await commandOf('Extensions in another schema', 0), uriOf(to))
    const client = await bench.as(to)
    expect((await client.query(`SELECT c FROM t WHERE c = 'a'`)).rows).toEqual([{ c: 'A' }])
  })
})
