import knex from 'knex'
import { describe, expect, test } from 'vitest'
import { LIMITS, postgresqlBench, DENIED } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import type { Tenant } from '../../../operator/engines/engine.ts'

/** Extensions that a region allows by default (crds/motor.ts). */
const DEFAULTS = [
  ...['pgcrypto', 'uuid-ossp', 'citext', 'hstore', 'pg_trgm', 'unaccent'],
  ...['btree_gin', 'btree_gist', 'ltree', 'fuzzystrmatch', 'tablefunc'],
]

describe.each(SERIES)('PostgreSQL %s: extensions', (series) => {
  const bench = postgresqlBench(series)

  const uriOf = ({ name, password }: Tenant): string => {
    const { host, port, ca } = bench.server.target
    return `postgresql://${name}:${password}@${host}:${port}/${name}${ca === undefined ? '' : '?sslmode=require'}`
  }

  test.each([...DEFAULTS, 'intarray', 'plperl', 'pltcl', 'cube', 'isn', 'tsm_system_rows'])(
    'a tenant cannot install %s, which PostgreSQL trusts by default',
    async (extension) => {
      const client = await bench.as(await bench.tenant('mallory'))
      await expect(client.query(`CREATE EXTENSION "${extension}"`)).rejects.toMatchObject({
        code: DENIED,
        message: expect.stringContaining(
          `POST /v1/instances/{id}/extensions with the body {"name":"${extension}"} installs it if the region allows it`,
        ) as string,
      })
      await expect(client.query(`CREATE EXTENSION "${extension}" CASCADE`)).rejects.toMatchObject({ code: DENIED })
      await client.end()
    },
  )

  test('an extension that the server does not have is rejected without a path of the server', async () => {
    const client = await bench.as(await bench.tenant('mapper'))
    const error: unknown = await client.query('CREATE EXTENSION IF NOT EXISTS postgis').catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: '0A000', message: 'extension "postgis" is not available on this server' })
    expect(JSON.stringify(error)).not.toContain('.control')
    await client.end()
  })

  test('a tenant cannot install an extension within CREATE SCHEMA, where search_path does not protect its script', async () => {
    const client = await bench.as(await bench.tenant('mallory'))
    await client.query(`
      CREATE FUNCTION install() RETURNS int LANGUAGE plpgsql AS $$ BEGIN CREATE EXTENSION hstore; RETURN 1; END $$;
      CREATE FUNCTION fold() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN install(); END $$`)
    await expect(
      client.query('CREATE SCHEMA trap CREATE TABLE t (n int) CREATE INDEX ON t ((public.fold() + n))'),
    ).rejects.toMatchObject({ code: DENIED })
    await client.end()
  })

  test('of the operator work, and CREATE EXTENSION IF NOT EXISTS succeeds for them', async () => {
    const tenant = await bench.tenant('extended')
    const all = { installed: DEFAULTS.toSorted(), refused: [] }
    expect(await bench.admin.installExtensions(tenant.name, DEFAULTS)).toEqual(all)
    expect(await bench.admin.installExtensions(tenant.name, DEFAULTS)).toEqual(all)
    const client = await bench.as(tenant)
    for (const extension of DEFAULTS) await client.query(`CREATE EXTENSION IF NOT EXISTS "${extension}" WITH SCHEMA public`)
    const { rows } = await client.query(`
      SELECT length(gen_random_uuid()::text) AS uuid, 'A'::citext = 'a' AS citext, 'a=>1'::hstore -> 'a' AS hstore,
        unaccent('Ärger') AS unaccent, similarity('word', 'words') > 0.5 AS trgm, crypt('x', gen_salt('bf', 4)) LIKE '$2a$%' AS crypt,
        'a.b'::ltree <@ 'a' AS ltree, levenshtein('a', 'b') AS levenshtein, uuid_generate_v4() IS NOT NULL AS ossp`)
    expect(rows).toEqual([
      {
        ...{ uuid: 36, citext: true, hstore: '1', unaccent: 'Arger', trgm: true, crypt: true, ltree: true },
        ...{ levenshtein: 1, ossp: true },
      },
    ])
    await client.query(
      'CREATE TABLE t (n int, r int4range, EXCLUDE USING gist (n WITH =, r WITH &&)); CREATE INDEX ON t USING gin (n)',
    )
  })

  test('belong to the tenant, but the objects in them do not', async () => {
    const tenant = await bench.tenant('owner')
    await bench.admin.installExtensions(tenant.name, ['citext', 'hstore'])
    const client = await bench.as(tenant)
    await client.query(`COMMENT ON EXTENSION citext IS 'mine'; CREATE SCHEMA s; ALTER EXTENSION hstore SET SCHEMA public`)
    await expect(client.query('ALTER FUNCTION citext_eq(citext, citext) COST 1')).rejects.toMatchObject({ code: DENIED })
    await expect(client.query('ALTER EXTENSION citext UPDATE')).resolves.toBeDefined()
    const recorded = new Map([['owner', ['citext', 'hstore']]])
    expect(await bench.admin.findChangedExtensions(recorded)).toEqual([])
    await client.query('DROP EXTENSION citext')
    expect(await bench.admin.findChangedExtensions(recorded)).toEqual(['owner'])
    expect(await bench.admin.findChangedExtensions(new Map([['owner', ['hstore']]]))).toEqual([])
    expect(await bench.admin.installExtensions(tenant.name, ['citext', 'hstore'])).toEqual({
      ...{ installed: ['citext', 'hstore'], refused: [] },
    })
    expect(await bench.admin.findChangedExtensions(recorded)).toEqual([])
    await bench.admin.drop('owner')
    expect(await bench.admin.find('owner')).toEqual({ database: false, login: 'absent' })
  })

  test('of a template are in its copy, and belong to the new tenant', async () => {
    const model = await bench.tenant('model')
    await bench.admin.installExtensions('model', ['citext'])
    await (await bench.as(model)).query('CREATE TABLE t (c citext)')
    await bench.admin.disableLogin('model')
    const copy = { name: 'copy', password: 'password-of-copy' }
    await bench.admin.claim(copy, LIMITS, { template: 'model' })
    const client = await bench.as(copy)
    await client.query(`INSERT INTO t VALUES ('A'); COMMENT ON EXTENSION citext IS 'mine'`)
    await bench.admin.drop('model')
    expect((await client.query(`SELECT * FROM t WHERE c = 'a'`)).rows).toHaveLength(1)
  })

  test.each([
    ['dblink', 'no region allows'],
    ['plpython3u', 'has an unsafe language'],
  ])('a tenant cannot install %s, which %s', async (extension) => {
    const client = await bench.as(await bench.tenant('mallory'))
    await expect(client.query(`CREATE EXTENSION ${extension}`)).rejects.toThrow()
    await client.end()
  })

  test.each(['nosuchextension', 'earthdistance', 'xml2'])(
    'the operator does not install %s, which is missing or cannot be installed safely',
    async (name) => {
      const tenant = await bench.tenant('refused')
      expect(await bench.admin.installExtensions(tenant.name, [name, 'hstore'])).toMatchObject({
        ...{ installed: ['hstore'], refused: [{ name, reason: 'unavailable' }] },
      })
      await (await bench.as(tenant)).query(`SELECT 'a=>1'::hstore`)
    },
  )

  test('that conflict with an object of the tenant are rejected, and the attempt leaves no objects', async () => {
    const tenant = await bench.tenant('conflicting')
    const client = await bench.as(tenant)
    await client.query('CREATE TYPE citext AS (n int)')
    expect(await bench.admin.installExtensions(tenant.name, ['hstore', 'citext', 'ltree'])).toMatchObject({
      ...{ installed: ['hstore', 'ltree'], refused: [{ name: 'citext', reason: 'conflict' }] },
    })
    const { rows } = await client.query(`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'mooring%'`)
    expect(rows).toEqual([])
    await client.query('DROP TYPE citext')
    await bench.admin.installExtensions(tenant.name, ['citext'])
  })

  test('are installed when the tenant dropped or recreated schema public', async () => {
    const tenant = await bench.tenant('publicless')
    const client = await bench.as(tenant)
    await client.query('DROP SCHEMA public CASCADE')
    await bench.admin.installExtensions(tenant.name, ['citext'])
    await client.query(`CREATE TABLE public.t (c public.citext)`)
    await client.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    await bench.admin.installExtensions(tenant.name, ['citext'])
    await client.query(`CREATE TABLE t (c citext)`)
  })

  test('do not run functions of the tenant during their installation', async () => {
    const tenant = await bench.tenant('trapper')
    const client = await bench.as(tenant)
    await client.query(`
      CREATE TABLE caught (who text);
      CREATE FUNCTION catch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO caught VALUES (current_user); RETURN NEW; END $$;
      CREATE FUNCTION public.eq(text, text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN INSERT INTO caught VALUES (current_user); RETURN true; END $$;
      CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.eq);
      ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO PUBLIC;
      ALTER ROLE trapper SET search_path = public, pg_catalog`)
    await bench.admin.installExtensions(tenant.name, ['citext', 'uuid-ossp', 'pg_trgm', 'unaccent', 'pgcrypto'])
    await bench.admin.installExtensions(tenant.name, ['hstore'])
    expect((await client.query('SELECT who FROM caught')).rows).toEqual([])
    const { rows } = await client.query('SELECT rolsuper FROM pg_roles WHERE rolname = current_user')
    expect(rows).toEqual([{ rolsuper: false }])
  })

  test('are installed without waiting for locks of the tenant', async () => {
    const tenant = await bench.tenant('locking')
    const client = await bench.as(tenant)
    await client
      .query('BEGIN; ALTER SCHEMA public RENAME TO public')
      .catch(() => client.query('ROLLBACK; BEGIN; COMMENT ON SCHEMA public IS NULL; CREATE TYPE citext AS (n int)'))
    await bench.admin.installExtensions(tenant.name, ['citext'])
    await (await bench.as(tenant)).query('CREATE TABLE t (c citext)')
  })

  test('are available to migrations of knex and Prisma', async () => {
    const tenant = await bench.tenant('migrating')
    await bench.admin.installExtensions(tenant.name, ['uuid-ossp', 'citext', 'pgcrypto'])
    const { ca } = bench.server.target
    const connection = { connectionString: uriOf(tenant).split('?')[0] ?? '', ...(ca !== undefined && { ssl: { ca } }) }
    const db = knex({ client: 'pg', connection })
    try {
      await db.raw('create extension if not exists "uuid-ossp"')
      await db.schema.createTable('users', (table) => {
        table.uuid('id').primary().defaultTo(db.raw('uuid_generate_v4()'))
        table.specificType('email', 'citext').unique()
      })
      await db('users').insert({ email: 'A@example.com' })
      await db.raw('-- CreateExtension\nCREATE EXTENSION IF NOT EXISTS "pgcrypto" WITH SCHEMA "public"')
      await db.raw('ALTER TABLE "users" ADD COLUMN "token" UUID NOT NULL DEFAULT gen_random_uuid()')
      expect(await db('users').where({ email: 'a@EXAMPLE.com' })).toHaveLength(1)
    } finally {
      await db.destroy()
    }
  })
})
