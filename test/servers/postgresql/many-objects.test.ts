import { describe, expect, test } from 'vitest'
import { LIMITS, postgresqlBench } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'

/** Entries of the lock table: 10 for each of 60 connections, and some that PostgreSQL keeps in reserve. */
const SMALL_LOCK_TABLE = { settings: { max_connections: '60', max_locks_per_transaction: '10' } }
const MANY = 1_500
const VIEWS = 3_000

/** Returns a statement that runs `sql` many times, 100 times in a transaction. `%1$s` in it is the number of the run. */
const forMany = (sql: string, count = MANY): string => `
  DO $do$ BEGIN
    FOR i IN 1..${count} LOOP
      EXECUTE format($sql$${sql}$sql$, i);
      IF i % 100 = 0 THEN COMMIT; END IF;
    END LOOP;
  END $do$`

/** Statements that name a role in a policy, a privilege and a default privilege of each of many objects. */
const namingOften = (role: string): readonly string[] => [
  'CREATE TABLE guarded (n int); INSERT INTO guarded VALUES (1)',
  forMany(`CREATE POLICY p%1$s ON guarded TO ${role} USING (false)`),
  forMany(`CREATE SCHEMA s%1$s; GRANT USAGE ON SCHEMA s%1$s TO ${role};
    ALTER DEFAULT PRIVILEGES IN SCHEMA s%1$s GRANT SELECT ON TABLES TO ${role}`),
  `CREATE POLICY several ON guarded TO ${role}, ${role}, bystander USING (false);
  CREATE POLICY twice ON guarded TO ${role}, ${role} USING (false);
  CREATE POLICY own ON guarded TO CURRENT_USER USING (n = 1);
  ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
  COMMENT ON POLICY twice ON guarded IS 'no more';
  CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; GRANT EXECUTE ON FUNCTION f() TO ${role}, bystander;
  GRANT SELECT (n) ON guarded TO ${role}; SELECT lo_create(4711); GRANT SELECT ON LARGE OBJECT 4711 TO ${role}`,
]

describe.each(SERIES)('PostgreSQL %s: more objects than the lock table has entries', (series) => {
  const bench = postgresqlBench(series, SMALL_LOCK_TABLE)

  test('that name a tenant do not stop its DELETE, and the neighbour keeps the rest of its privileges', async () => {
    const neighbour = await bench.tenant('neighbour')
    for (const name of ['bystander', 'leaving']) await bench.tenant(name)
    const client = await bench.as(neighbour)
    for (const sql of namingOften('leaving')) await client.query(sql)
    await bench.admin.drop('leaving')
    expect(await bench.admin.find('leaving')).toEqual({ database: false, login: 'absent' })
    await client.query('ALTER TABLE guarded FORCE ROW LEVEL SECURITY')
    expect((await client.query('SELECT n FROM guarded')).rows).toEqual([{ n: 1 }])
    const { rows } = await client.query(`
      SELECT (SELECT array_agg(polname || ' ' || array_length(polroles, 1) ORDER BY polname) FROM pg_policy) AS policies,
        (SELECT count(*)::int FROM pg_default_acl) AS defaults, has_function_privilege('bystander', 'f()', 'EXECUTE') AS bystander,
        (SELECT count(*)::int FROM pg_namespace WHERE nspacl::text ~ '[0-9]+=' AND nspname ~ '^s') AS dangling,
        (SELECT count(*)::int FROM pg_depend WHERE classid = 'pg_policy'::regclass AND objid NOT IN (SELECT oid FROM pg_policy)) AS left`)
    expect(rows).toEqual([{ policies: ['own 1', 'several 1'], defaults: 0, bystander: true, dangling: 0, left: 0 }])
    // The catalogs are whole: what is left can be dropped.
    await client.query('DROP TABLE guarded; DROP FUNCTION f(); SELECT lo_unlink(4711)')
    await bench.admin.drop('neighbour')
  })

  test('of a template are copied, and belong to the copy', async () => {
    const model = await bench.tenant('model')
    const client = await bench.as(model)
    await client.query('CREATE TABLE t (n int)')
    await client.query(forMany('CREATE VIEW v%1$s AS SELECT * FROM t', VIEWS))
    await client.end()
    const copy = { name: 'copy', password: 'password-of-copy' }
    await bench.admin.claim(copy, LIMITS, { template: 'model' })
    await bench.admin.drop('model')
    const own = await bench.as(copy)
    await own.query('DROP VIEW v1')
    const owned = await own.query(`SELECT count(*)::int AS n FROM pg_class WHERE relowner = 'copy'::regrole`)
    expect(owned.rows).toEqual([{ n: VIEWS }])
  })
})
