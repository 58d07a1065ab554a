import { describe, expect, test } from 'vitest'
import { LIMITS, postgresqlBench } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import { patient } from '../../support/patience.ts'

const MODEL = `
  CREATE TABLE item (id serial PRIMARY KEY, name text NOT NULL);
  INSERT INTO item (name) VALUES ('one'), ('two');
  CREATE VIEW names AS SELECT name FROM item;
  CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM item;
  CREATE TYPE mood AS ENUM ('good', 'bad');
  CREATE SCHEMA extra; CREATE TABLE extra.more (n int);
  CREATE FUNCTION answer() RETURNS int LANGUAGE sql AS 'SELECT 42';
  CREATE PUBLICATION changes FOR TABLE item;
  SELECT lo_from_bytea(4711, 'large');
  CREATE TABLE guarded (n int); INSERT INTO guarded VALUES (1);
  ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; ALTER TABLE guarded FORCE ROW LEVEL SECURITY;
  CREATE POLICY mine ON guarded TO model USING (true);
  CREATE POLICY shared ON guarded FOR SELECT TO PUBLIC USING (false);
  GRANT SELECT ON item TO bystander; GRANT SELECT (n) ON guarded TO model;
  ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
  ALTER DEFAULT PRIVILEGES IN SCHEMA extra GRANT SELECT ON TABLES TO bystander;
  ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO bystander WITH GRANT OPTION;
`

describe.each(SERIES)('PostgreSQL %s copies a template', (series) => {
  const bench = postgresqlBench(series)
  const code = (expected: string): Error => expect.objectContaining({ code: expected }) as Error
  const copy = { name: 'copy', password: 'password-of-copy' }

  test('so that the new tenant owns all objects of the copy', async () => {
    await bench.tenant('bystander')
    const model = await bench.tenant('model')
    await bench.admin.installExtensions('model', ['pgcrypto', 'hstore'])
    const source = await bench.as(model)
    await source.query(MODEL)
    await source.end()
    await bench.admin.claim(copy, LIMITS, { template: 'model' })
    await bench.admin.verify(copy)

    const root = await bench.server.client({ database: 'copy' })
    const traces = await root.query(
      `SELECT classid::regclass, objid, deptype FROM pg_shdepend
       WHERE refclassid = 'pg_authid'::regclass AND refobjid = 'model'::regrole
         AND dbid = (SELECT oid FROM pg_database WHERE datname = 'copy')`,
    )
    expect(traces.rows).toEqual([])
    const rights = await root.query(
      `SELECT has_database_privilege('model', 'model', 'CONNECT, CREATE, TEMPORARY') AS own,
              has_database_privilege('model', 'copy', 'CONNECT, CREATE, TEMPORARY') AS others,
              has_database_privilege('copy', 'model', 'CONNECT, CREATE, TEMPORARY') AS back`,
    )
    expect(rights.rows).toEqual([{ own: true, others: false, back: false }])

    const client = await bench.as(copy)
    expect((await client.query('SELECT name FROM names ORDER BY 1')).rows).toEqual([{ name: 'one' }, { name: 'two' }])
    await client.query(`INSERT INTO item (name) VALUES ('three'); REFRESH MATERIALIZED VIEW counted; UPDATE item SET name = 'x'`)
    expect((await client.query('SELECT n FROM guarded')).rows).toEqual([{ n: 1 }])
    expect((await client.query(`SELECT answer(), convert_from(lo_get(4711), 'UTF8') AS large`)).rows).toEqual([
      { answer: 42, large: 'large' },
    ])
    await client.query(
      'CREATE FUNCTION later() RETURNS int LANGUAGE sql AS $$SELECT 1$$; CREATE TABLE extra.later (n int); CREATE TABLE later (n int)',
    )
    const defaults = await client.query(
      `SELECT has_function_privilege('bystander', 'later()', 'EXECUTE') AS run, has_table_privilege('bystander', 'extra.later', 'SELECT') AS read,
              has_table_privilege('bystander', 'later', 'INSERT WITH GRANT OPTION') AS pass_on`,
    )
    expect(defaults.rows).toEqual([{ run: false, read: true, pass_on: true }])
    await client.query(`
      SELECT lo_unlink(4711); DROP PUBLICATION changes; DROP EXTENSION pgcrypto; DROP EXTENSION hstore; DROP TYPE mood; DROP SCHEMA extra CASCADE;
      DROP POLICY mine ON guarded; DROP FUNCTION answer(); DROP SCHEMA public CASCADE; CREATE SCHEMA public`)

    await (await bench.as(model)).query(`INSERT INTO item (name) VALUES ('still mine')`)
  })

  test('on reset, and keeps the credentials', async () => {
    const model = await bench.tenant('golden')
    const source = await bench.as(model)
    await source.query('CREATE TABLE golden AS SELECT 1 AS n')
    await source.end()
    const tenant = { name: 'fresh', password: 'password-of-fresh' }
    await bench.admin.claim(tenant, LIMITS, { template: 'golden' })
    await (await bench.as(tenant)).query('DROP TABLE golden; CREATE TABLE own (n int)')
    await bench.admin.reset('fresh', { template: 'golden' })
    expect((await (await bench.as(tenant)).query(`SELECT n, to_regclass('own') FROM golden`)).rows).toEqual([
      { n: 1, to_regclass: null },
    ])
  })

  test('in several concurrent calls', { timeout: patient(240_000) }, async () => {
    const model = await bench.tenant('popular')
    const source = await bench.as(model)
    await source.query('CREATE TABLE t (n int); ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC')
    await source.end()
    const copies = Array.from({ length: 4 }, (_, i) => ({ name: `popular${i}`, password: 'x' }))
    await Promise.all(copies.map((tenant) => bench.admin.claim(tenant, LIMITS, { template: 'popular' })))
    for (const tenant of copies) await (await bench.as(tenant)).query('INSERT INTO t VALUES (1)')
  })

  test('only while no session is open on it, and does not end sessions', async () => {
    const client = await bench.as(await bench.tenant('occupied'))
    await expect(bench.admin.claim({ ...copy, name: 'second' }, LIMITS, { template: 'occupied' })).rejects.toThrow(
      code('template_in_use'),
    )
    await client.query('SELECT 1')
    expect(await bench.admin.find('second')).toEqual({ database: false, login: 'absent' })
  })

  test.each(['absent', 'postgres', 'template0', 'pool_0123456789abcdef'])('only of a tenant, not of %s', async (template) => {
    await bench.settle(0)
    await expect(bench.admin.claim({ ...copy, name: 'third' }, LIMITS, { template })).rejects.toThrow(code('template_missing'))
    expect((await bench.admin.catalog()).leftovers).toEqual([])
  })
})
