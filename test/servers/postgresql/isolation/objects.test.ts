import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { DENIED, neighbours, rejection } from '../../../support/postgresql/engine.ts'
import { SERIES } from '../../../support/postgresql/postgres.ts'

const REFUSED: readonly (readonly [attempt: string, sql: string, sqlState: string])[] = [
  // Code that other roles would run.
  [
    'make an event trigger',
    `CREATE FUNCTION e() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION e()`,
    DENIED,
  ],
  ['make a base type', 'CREATE TYPE base (INPUT = textin, OUTPUT = textout)', DENIED],
  ['make an operator class', 'CREATE OPERATOR CLASS o FOR TYPE int USING btree AS STORAGE int', DENIED],
  ['make an access method', 'CREATE ACCESS METHOD a TYPE INDEX HANDLER bthandler', DENIED],
  ['make a foreign-data wrapper', 'CREATE FOREIGN DATA WRAPPER f', DENIED],
  ['cast built-in types', 'CREATE CAST (int AS text) WITH INOUT AS IMPLICIT', DENIED],
  ['put a table into the catalog', 'CREATE TABLE pg_catalog.t (n int)', DENIED],
  ['change the catalog', `UPDATE pg_database SET datallowconn = false WHERE datname = 'victim'`, DENIED],
  [
    'replace a built-in function',
    `CREATE OR REPLACE FUNCTION pg_catalog.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT null::timestamptz'`,
    DENIED,
  ],
  ...[
    'dblink',
    'postgres_fdw',
    'file_fdw',
    'adminpack',
    'pg_stat_statements',
    'pageinspect',
    'pg_buffercache',
    'pg_surgery',
    'xml2',
    'amcheck',
  ].map((extension) => [`install ${extension}`, `CREATE EXTENSION ${extension}`, DENIED] as const),
  ...['plpython3u', 'plperlu', 'pltclu'].map(
    (language) => [`install ${language}`, `CREATE EXTENSION ${language}`, DENIED] as const,
  ),
  ['make a language', 'CREATE LANGUAGE other HANDLER plpgsql_call_handler', DENIED],
  ['own a language', 'ALTER LANGUAGE plpgsql OWNER TO mallory', DENIED],
  ['drop an extension of the administrator', 'DROP EXTENSION plpgsql', DENIED],
  ['make an operator family', 'CREATE OPERATOR FAMILY f USING btree', DENIED],
  ['transform built-in types', 'CREATE TRANSFORM FOR int LANGUAGE sql (FROM SQL WITH FUNCTION prsd_lextype(internal))', DENIED],
  ['import collations of the system', `SELECT pg_import_system_collations('public')`, DENIED],
  ['index a catalog', 'CREATE INDEX ON pg_class (relname)', DENIED],
  ['put a rule on a catalog', 'CREATE RULE r AS ON SELECT TO pg_class DO INSTEAD SELECT 1', DENIED],
  [
    'put a trigger on a catalog',
    'CREATE TRIGGER r AFTER INSERT ON pg_class EXECUTE FUNCTION suppress_redundant_updates_trigger()',
    DENIED,
  ],
  ['put row security on a catalog', 'ALTER TABLE pg_class ENABLE ROW LEVEL SECURITY', DENIED],
  ['inherit from a catalog', 'CREATE TABLE heir () INHERITS (pg_class)', DENIED],
  ['make statistics of a catalog', 'CREATE STATISTICS s ON oid, relname FROM pg_class', DENIED],
  ['make a schema of the system', 'CREATE SCHEMA pg_evil', '42939'],
  ['add to information_schema', 'CREATE TABLE information_schema.t (n int)', DENIED],
  // Locks on catalogs that all databases share.
  ['lock the roles', 'BEGIN; LOCK TABLE pg_authid IN ACCESS SHARE MODE', DENIED],
  ['lock the list of databases', 'BEGIN; LOCK TABLE pg_database IN ROW EXCLUSIVE MODE', DENIED],
  ['lock the row of a database', 'SELECT FROM pg_database FOR KEY SHARE', DENIED],
  ['rebuild a shared catalog', 'REINDEX TABLE pg_authid', DENIED],
  ['rebuild all catalogs', 'REINDEX SYSTEM mallory', DENIED],
]

describe.each(SERIES)('PostgreSQL %s: a tenant', (series) => {
  const at = neighbours(series)

  test.each(REFUSED)('cannot %s', async (_, sql, sqlState) => {
    const client = await at.asMallory()
    expect(await rejection(client.query(sql))).toMatchObject({ code: sqlState })
    await client.end()
  })

  test('and its neighbour share no notifications and no advisory locks', async () => {
    const listener = await at.asVictim()
    await listener.query('LISTEN channel')
    const notification = once(listener, 'notification')
    const client = await at.asMallory()
    await client.query(`NOTIFY channel, 'from mallory'; SELECT pg_advisory_lock(7)`)
    await (await at.asVictim()).query(`NOTIFY channel, 'from victim'`)
    expect(await notification).toMatchObject([{ payload: 'from victim' }])
    expect((await listener.query('SELECT pg_try_advisory_lock(7) AS free')).rows).toEqual([{ free: true }])
  })
})
