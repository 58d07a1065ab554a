import { once } from 'node:events'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { postgresqlBench } from '../../../test/support/postgresql/engine.ts'
import { DENIED, OPEN, REFUSED, WITHOUT_EFFECT } from '../../../test/support/postgresql/postgres-attempts.ts'
import { SERIES } from '../../../test/support/postgresql/postgres.ts'
import { dialling, TIMEOUTS } from './connection.ts'

describe.each(SERIES)('PostgreSQL %s: a tenant', (series) => {
  const bench = postgresqlBench(series)
  const mallory = { name: 'mallory', password: 'password-of-mallory' }
  const victim = { name: 'victim', password: 'password-of-victim' }

  beforeAll(async () => {
    await bench.tenant('mallory')
    await bench.tenant('victim')
    const client = await bench.as(victim)
    await client.query(
      'CREATE TABLE secret AS SELECT 1 AS n; GRANT SELECT ON secret TO PUBLIC; GRANT USAGE ON SCHEMA public TO PUBLIC',
    )
  })

  const rejection = async (work: Promise<unknown>): Promise<unknown> => {
    try {
      await work
    } catch (error) {
      return error
    }
    return undefined
  }

  test.each(REFUSED)('cannot %s', async (_, sql, sqlState) => {
    const client = await bench.as(mallory)
    expect(await rejection(client.query(sql))).toMatchObject({ code: sqlState })
    await client.end()
  })

  test.each(WITHOUT_EFFECT)('is told that it cannot %s', async (_, sql) => {
    const client = await bench.as(mallory)
    const warned = once(client, 'notice')
    await client.query(sql)
    expect(await warned).toMatchObject([{ code: '01007' }])
    const { rows } = await client.query(
      `SELECT has_database_privilege('public', 'mallory', 'CONNECT') AS everybody, has_database_privilege('victim', 'mallory', 'CONNECT') AS victim`,
    )
    expect(rows).toEqual([{ everybody: false, victim: false }])
    await client.end()
  })

  test.each(OPEN)('can %s, as nothing closes that', async (_, sql) => {
    const client = await bench.as(mallory)
    const result: pg.QueryResult | pg.QueryResult[] = await client.query(sql)
    expect([result].flat().at(-1)?.rowCount).toBe(1)
    await client.end()
  })

  test.each(['victim', 'postgres', 'template0', 'template1'])('cannot connect to %s', async (database) => {
    expect(await rejection(bench.as(mallory, database))).toMatchObject({ code: '28000' })
  })

  test.each(['victim', 'postgres', 'template1'])('could not connect to %s if the access rules let it', async (database) => {
    const client = await bench.as(mallory)
    const { rows } = await client.query(`SELECT has_database_privilege($1, 'CONNECT, TEMPORARY, CREATE') AS allowed`, [database])
    expect(rows).toEqual([{ allowed: false }])
  })

  test('cannot create in the databases of the server, should it ever get there', async () => {
    for (const database of ['postgres', 'template1']) {
      const root = await bench.server.client({ database })
      const { rows } = await root.query(`SELECT has_schema_privilege('mallory', 'public', 'CREATE') AS allowed`)
      expect(rows).toEqual([{ allowed: false }])
    }
  })

  test('cannot connect to its spares and leftovers, nor to a database of no name', async () => {
    await bench.settle(1)
    const root = await bench.server.client()
    const { rows } = await root.query<{ datname: string; allowed: boolean }>(
      `SELECT datname, has_database_privilege('mallory', datname, 'CONNECT') AS allowed FROM pg_database WHERE datname LIKE 'pool%'`,
    )
    expect(rows).toMatchObject([{ allowed: false }])
    expect(await rejection(bench.as(mallory, rows[0]?.datname))).toMatchObject({ code: '28000' })
  })

  test('cannot connect without its password, or with the one of another', async () => {
    expect(await rejection(bench.as({ ...mallory, password: 'wrong' }))).toMatchObject({ code: '28P01' })
    expect(await rejection(bench.as({ ...mallory, name: 'mooring' }, 'postgres'))).toMatchObject({ code: '28P01' })
  })

  test.each(['true', 'database'])('cannot open a replication connection (%s)', async (replication) => {
    const dial = dialling(bench.server.target, TIMEOUTS)
    const config = { ...dial, user: 'mallory', password: mallory.password, database: 'mallory', replication }
    const client = new pg.Client(config)
    client.on('error', () => undefined)
    expect(await rejection(client.connect())).toMatchObject({ code: expect.stringMatching(/^(28000|42501|53300)$/) as string })
    await client.end()
  })

  test('cannot connect to a neighbour that made it a member of itself', async () => {
    const client = await bench.as(victim)
    const refused = await rejection(client.query('GRANT victim TO mallory'))
    // From 15 on not even this is allowed.
    if (series === '14') expect(refused).toBeUndefined()
    else expect(refused).toMatchObject({ code: DENIED })
    expect(await rejection(bench.as(mallory, 'victim'))).toMatchObject({ code: '28000' })
    if (series === '14') await client.query('REVOKE victim FROM mallory')
  })

  test('cannot open more connections than its limit, and others still connect', async () => {
    const root = await bench.server.client()
    await root.query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'mallory'`)
    for (let i = 0; i < 12; i++) await bench.as(mallory)
    expect(await rejection(bench.as(mallory))).toMatchObject({ code: '53300' })
    await (await bench.as(victim)).end()
    await root.query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'mallory'`)
  })

  test('cannot spill more to disk than the limit', async () => {
    const root = await bench.server.client()
    await root.query(`ALTER SYSTEM SET temp_file_limit = '1MB'`)
    await root.query('SELECT pg_reload_conf()')
    const client = await bench.as(mallory)
    await client.query(`SET work_mem = '64kB'`)
    expect(
      await rejection(client.query('SELECT count(*) FROM (SELECT g FROM generate_series(1, 1000000) g ORDER BY -g) s')),
    ).toMatchObject({
      code: '53400',
    })
  })

  test('does not hear the notifications of a neighbour, nor wait for its advisory locks', async () => {
    const listener = await bench.as(victim)
    await listener.query('LISTEN channel')
    const heard = once(listener, 'notification')
    const client = await bench.as(mallory)
    await client.query(`NOTIFY channel, 'from mallory'; SELECT pg_advisory_lock(7)`)
    await (await bench.as(victim)).query(`NOTIFY channel, 'from victim'`)
    expect(await heard).toMatchObject([{ payload: 'from victim' }])
    expect((await listener.query('SELECT pg_try_advisory_lock(7) AS free')).rows).toEqual([{ free: true }])
  })

  test('cannot make the admin run its code', async () => {
    const client = await bench.as(mallory)
    await client.query(`
      CREATE TABLE trap (who text);
      CREATE FUNCTION public.current_database() RETURNS name LANGUAGE plpgsql AS $$ BEGIN INSERT INTO trap VALUES (current_user); RETURN 'x'; END $$;
      CREATE FUNCTION public.quote_ident(varchar) RETURNS text LANGUAGE plpgsql AS $$ BEGIN INSERT INTO trap VALUES (current_user); RETURN $1; END $$;
      CREATE TABLE granted (n int)`)
    await bench.tenant('departing')
    await client.query('GRANT SELECT ON granted TO departing; ALTER ROLE mallory SET search_path = public, pg_catalog')
    await bench.admin.drop('departing')
    await client.end()
    await bench.admin.disableLogin('mallory')
    await bench.admin.claim({ name: 'trapped', password: 'x' }, { connections: 1 }, { template: 'mallory' })
    for (const database of ['mallory', 'trapped']) {
      expect((await (await bench.server.client({ database })).query('SELECT who FROM public.trap')).rows).toEqual([])
    }
    await bench.admin.enableLogin('mallory')
  })
})
