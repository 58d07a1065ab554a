import { describe, expect, test } from 'vitest'
import { neighbours } from '../../../support/postgresql/engine.ts'
import { SERIES } from '../../../support/postgresql/postgres.ts'

/** All kinds of objects that a tenant can create, with the catalog rows that each one leaves. */
const OBJECTS: readonly (readonly [kind: string, sql: string, catalog: string])[] = [
  ['a schema', 'CREATE SCHEMA s', `pg_namespace WHERE nspname = 's'`],
  ['a table', 'CREATE TABLE t (n int PRIMARY KEY, text text)', `pg_class WHERE relname = 't'`],
  ['a partitioned table', 'CREATE TABLE p (n int) PARTITION BY LIST (n)', `pg_partitioned_table`],
  ['an unlogged table', 'CREATE UNLOGGED TABLE u (n int)', `pg_class WHERE relpersistence = 'u'`],
  ['a temporary table', 'CREATE TEMPORARY TABLE temporary (n int)', `pg_class WHERE relpersistence = 't'`],
  ['a sequence', 'CREATE SEQUENCE q', `pg_sequence`],
  ['a view', 'CREATE VIEW v AS SELECT 1 AS n', `pg_class WHERE relname = 'v'`],
  ['a materialized view', 'CREATE MATERIALIZED VIEW m AS SELECT 1 AS n', `pg_class WHERE relkind = 'm'`],
  ['a rule', 'CREATE RULE r AS ON DELETE TO t DO INSTEAD NOTHING', `pg_rewrite WHERE rulename = 'r'`],
  ['statistics', 'CREATE STATISTICS st ON n, text FROM t', `pg_statistic_ext`],
  ['a type', 'CREATE TYPE y AS (n int)', `pg_type WHERE typname = 'y'`],
  ['a domain', 'CREATE DOMAIN d AS int', `pg_type WHERE typname = 'd'`],
  ['a range type', 'CREATE TYPE ra AS RANGE (subtype = int)', `pg_range WHERE rngtypid = 'ra'::regtype`],
  ['a function', `CREATE FUNCTION f(y) RETURNS text LANGUAGE sql AS 'SELECT 1::text'`, `pg_proc WHERE proname = 'f'`],
  [
    'a function with the privileges of its owner',
    `CREATE FUNCTION g() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'`,
    `pg_proc WHERE proname = 'g' AND prosecdef`,
  ],
  ['an aggregate', 'CREATE AGGREGATE a (int) (SFUNC = int4pl, STYPE = int)', `pg_proc WHERE proname = 'a'`],
  ['an operator', 'CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq)', `pg_operator WHERE oprname = '==='`],
  ['a cast', 'CREATE CAST (y AS text) WITH FUNCTION f(y)', `pg_cast WHERE castsource = 'y'::regtype`],
  ['a collation', 'CREATE COLLATION co FROM "C"', `pg_collation WHERE collname = 'co'`],
  [
    'a conversion',
    `CREATE DEFAULT CONVERSION cv FOR 'UTF8' TO 'LATIN1' FROM utf8_to_iso8859_1`,
    `pg_conversion WHERE conname = 'cv'`,
  ],
  ['a text search dictionary', 'CREATE TEXT SEARCH DICTIONARY di (TEMPLATE = simple)', `pg_ts_dict WHERE dictname = 'di'`],
  ['a text search configuration', 'CREATE TEXT SEARCH CONFIGURATION tc (COPY = simple)', `pg_ts_config WHERE cfgname = 'tc'`],
  ['a publication', 'CREATE PUBLICATION pu FOR TABLE t', `pg_publication`],
  ['a large object', `SELECT lo_from_bytea(0, 'x')`, `pg_largeobject_metadata`],
  ['a comment', `COMMENT ON TABLE t IS 'x'`, `pg_description WHERE description = 'x'`],
  ['a grant to a neighbour', 'GRANT SELECT ON t TO victim', `pg_class WHERE relname = 't' AND relacl IS NOT NULL`],
  ['a policy for a neighbour', 'CREATE POLICY po ON t TO victim', `pg_policy`],
  ['a default privilege for a neighbour', 'ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO victim', `pg_default_acl`],
  [
    'a trigger',
    'CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()',
    `pg_trigger WHERE tgname = 'tr'`,
  ],
  [
    'a function for event triggers',
    `CREATE FUNCTION e() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'`,
    `pg_proc WHERE proname = 'e'`,
  ],
  ['settings of its role', `ALTER ROLE mallory SET work_mem = '8MB'`, `pg_db_role_setting WHERE setrole = 'mallory'::regrole`],
  [
    'settings of its role in the database of a neighbour',
    `ALTER ROLE mallory IN DATABASE victim SET work_mem = '8MB'`,
    `pg_db_role_setting WHERE setdatabase <> 0`,
  ],
  ['a cursor that outlives its transaction', 'DECLARE cu CURSOR WITH HOLD FOR SELECT 1', 'pg_cursors WHERE is_holdable'],
  ['a prepared statement', 'PREPARE ps AS SELECT 1', `pg_prepared_statements WHERE name = 'ps'`],
  ['an advisory lock', 'SELECT pg_advisory_lock(1)', `pg_locks WHERE locktype = 'advisory'`],
  ['a channel that it listens on', 'LISTEN ch', 'pg_listening_channels()'],
]

describe.each(SERIES)('PostgreSQL %s: DELETE of a tenant', (series) => {
  const at = neighbours(series)

  test('removes every kind of object that it can create', async () => {
    const client = await at.asMallory()
    const made: string[] = []
    for (const [kind, sql, catalog] of OBJECTS) {
      await client.query(sql)
      if (((await client.query(`SELECT FROM ${catalog}`)).rowCount ?? 0) > 0) made.push(kind)
    }
    expect(made).toEqual(OBJECTS.map(([kind]) => kind))

    const root = await at.bench.server.client()
    const { rows } = await root.query<{ role: number; base: number }>(
      `SELECT 'mallory'::regrole::oid AS role, oid AS base FROM pg_database WHERE datname = 'mallory'`,
    )
    const [{ role, base } = { role: 0, base: 0 }] = rows
    const traces = async (): Promise<unknown> =>
      (
        await root.query(
          `SELECT (SELECT count(*)::int FROM pg_shdepend WHERE dbid = $2 OR refobjid = $1) AS dependencies,
             (SELECT count(*)::int FROM pg_db_role_setting WHERE setrole = $1 OR setdatabase = $2) AS settings,
             (SELECT count(*)::int FROM pg_auth_members WHERE roleid = $1 OR member = $1) AS members,
             (SELECT count(*)::int FROM pg_authid WHERE oid = $1) AS roles,
             (SELECT count(*)::int FROM pg_stat_activity WHERE usesysid = $1 OR datid = $2) AS sessions,
             (SELECT count(*)::int FROM pg_locks WHERE database = $2) AS locks,
             (SELECT count(*)::int FROM pg_ls_dir('base') name WHERE name = $2::text) AS directories`,
          [role, base],
        )
      ).rows[0]
    expect(await traces()).toMatchObject({ settings: 2, roles: 1, sessions: 1, directories: 1 })
    await at.bench.admin.drop('mallory')
    expect(await traces()).toEqual({ dependencies: 0, settings: 0, members: 0, roles: 0, sessions: 0, locks: 0, directories: 0 })
    expect((await (await at.asVictim()).query('SELECT n FROM secret')).rows).toEqual([{ n: 1 }])
  })
})
