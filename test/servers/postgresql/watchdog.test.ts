import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { postgresqlBench, until } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import { connect } from '../../../operator/engines/postgresql/connection.ts'
import { createWatchdog, guardTransactionIds } from '../../../operator/engines/postgresql/watchdog.ts'

const UNLIMITED = { statementMs: 600_000, idleTransactionMs: 600_000, sizeBytes: 1 << 30 }
/** SQLSTATE admin_shutdown. */
const ENDED = { code: '57P01' }

const rejection = (work: Promise<unknown>): Promise<unknown> => work.then(() => undefined).catch((error: unknown) => error)

describe.each(SERIES)('PostgreSQL %s: the watchdog', (series) => {
  const bench = postgresqlBench(series)

  async function hasSession(name: string, condition: string): Promise<boolean> {
    const root = await bench.server.client()
    const { rowCount } = await root.query(`SELECT FROM pg_stat_activity WHERE usename = $1 AND ${condition}`, [name])
    await root.end()
    return rowCount === 1
  }

  const isAsleep = (name: string): Promise<boolean> => hasSession(name, `wait_event = 'PgSleep'`)

  async function expectOpen(client: pg.Client): Promise<void> {
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  }

  test('cancels a long statement, and ends a session that catches the cancellation', async () => {
    const tenant = await bench.tenant('slow')
    const client = await bench.as(tenant)
    const cancelled = rejection(client.query('SELECT pg_sleep(600)'))
    await until(() => isAsleep('slow'))
    expect(await bench.admin.enforce(UNLIMITED)).toEqual({ cancelled: 0, ended: 0 })
    expect(await bench.admin.enforce({ ...UNLIMITED, statementMs: 0 })).toEqual({ cancelled: 1, ended: 0 })
    expect(await cancelled).toMatchObject({ code: '57014' })

    const stubborn = await bench.as(tenant)
    const ended = rejection(
      stubborn.query(
        `DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$`,
      ),
    )
    await until(() => isAsleep('slow'))
    await bench.admin.enforce({ ...UNLIMITED, statementMs: 0 })
    await until(() => isAsleep('slow'))
    expect(await bench.admin.enforce({ ...UNLIMITED, statementMs: 0 })).toEqual({ cancelled: 0, ended: 1 })
    expect(await ended).toMatchObject(ENDED)
  })

  test.each([
    ['idle in transaction', 'BEGIN; SELECT 1'],
    ['idle in transaction (aborted)', 'BEGIN; SELECT 1/0'],
  ])('ends a session that is %s past its bound, whatever timeout the session has set', async (_, sql) => {
    const tenant = await bench.tenant('dozing')
    const [client, idle] = [await bench.as(tenant), await bench.as(tenant)]
    await client.query('SET idle_in_transaction_session_timeout = 0')
    await rejection(client.query(sql))
    // A server sends the error of a statement before it shows the new state of the session.
    await until(() => hasSession('dozing', `state LIKE 'idle in transaction%'`))
    expect(await bench.admin.enforce(UNLIMITED)).toEqual({ cancelled: 0, ended: 0 })
    expect(await bench.admin.enforce({ ...UNLIMITED, idleTransactionMs: 0 })).toEqual({ cancelled: 0, ended: 1 })
    await expect(client.query('SELECT 1')).rejects.toThrow()
    await expectOpen(idle)
  })

  test('ends only a session whose temporary files and database take more than the size limit', async () => {
    const client = await bench.as(await bench.tenant('spilling'))
    await client.query(`SET work_mem = '64kB'`)
    await client.query('BEGIN; DECLARE c CURSOR FOR SELECT g FROM generate_series(1, 3000000) g ORDER BY -g; FETCH 1 FROM c')
    const small = await bench.as(await bench.tenant('small'))
    await small.query(
      `SET work_mem = '64kB'; BEGIN; DECLARE c CURSOR FOR SELECT g FROM generate_series(1, 30000) g ORDER BY -g; FETCH 1 FROM c`,
    )
    const [{ size } = { size: '0' }] = (
      await client.query<{ size: string }>('SELECT pg_database_size(current_database()) AS size')
    ).rows
    const sizeBytes = Number(size) + 16 * 1_048_576
    expect(await bench.admin.enforce({ ...UNLIMITED, sizeBytes: sizeBytes + (1 << 30) })).toEqual({ cancelled: 0, ended: 0 })
    expect(await bench.admin.enforce({ ...UNLIMITED, sizeBytes })).toEqual({ cancelled: 0, ended: 1 })
    await expect(client.query('SELECT 1')).rejects.toThrow()
    await expectOpen(small)
  })

  test('counts the temporary files of parallel queries', async () => {
    const client = await bench.as(await bench.tenant('parallel'))
    await client.query(`
      CREATE TABLE t AS SELECT g, repeat('x', 50) AS filler FROM generate_series(1, 300000) g; ANALYZE t;
      SET work_mem = '64kB'; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
      SET enable_mergejoin = off; SET enable_nestloop = off; SET max_parallel_workers_per_gather = 2`)
    let isOver = false
    // The slow function keeps the shared files of the hash join while the watchdog searches for them.
    const ended = rejection(
      client.query(
        `SELECT count(pg_sleep(CASE WHEN a.g % 1000 = 0 THEN 0.5 ELSE 0 END)) FROM t a JOIN t b ON a.filler || a.g = b.filler || b.g`,
      ),
    ).finally(() => (isOver = true))
    await until(async () => {
      await bench.admin.enforce({ ...UNLIMITED, sizeBytes: 1 })
      return isOver
    })
    expect(await ended).toMatchObject(ENDED)
  })

  test('returns the used share of transaction ids, and ends old sessions in a database above the bound', async () => {
    await using connection = connect(bench.server.target)
    expect(await guardTransactionIds(connection.watch)).toBeLessThan(0.01)
    expect(await bench.admin.guardTransactionIds()).toBeGreaterThan(0)
    const client = await bench.as(await bench.tenant('lasting'))
    await guardTransactionIds(connection.watch, { maxUsed: 0 })
    await expectOpen(client)
    await guardTransactionIds(connection.watch, { maxUsed: 0, minAgeS: 0 })
    await expect(client.query('SELECT 1')).rejects.toThrow()
  })

  test('ends only a session whose snapshot is too old in transaction ids', async () => {
    await using connection = connect(bench.server.target)
    const enforce = createWatchdog(connection, { snapshotAge: 1_000 })
    const tenant = await bench.tenant('ageing')
    const [old, fresh, burner] = [await bench.as(tenant), await bench.as(tenant), await bench.as(tenant)]
    await old.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1')
    await fresh.query('BEGIN; SELECT 1')
    expect(await enforce(UNLIMITED)).toEqual({ cancelled: 0, ended: 0 })
    await burner.query(`
      CREATE TABLE burnt (n int);
      DO $$ BEGIN FOR i IN 1..1001 LOOP BEGIN INSERT INTO burnt VALUES (i); EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$`)
    expect(await enforce(UNLIMITED)).toEqual({ cancelled: 0, ended: 1 })
    await expect(old.query('SELECT 1')).rejects.toThrow()
    await expectOpen(fresh)
  })
})
