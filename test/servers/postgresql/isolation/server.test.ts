import { describe, expect, test } from 'vitest'
import { DENIED, neighbours, rejection } from '../../../support/postgresql/engine.ts'
import { SERIES } from '../../../support/postgresql/postgres.ts'

const REFUSED: readonly (readonly [attempt: string, sql: string, sqlState: string])[] = [
  // Settings and operation of the server.
  ['change the server’s settings', `ALTER SYSTEM SET work_mem = '1GB'`, DENIED],
  ['log statements', `SET log_statement = 'all'`, DENIED],
  ['silence the log', 'SET log_min_messages = panic', DENIED],
  ['lift the limit on temporary files', 'SET temp_file_limit = -1', DENIED],
  ['skip triggers', 'SET session_replication_role = replica', DENIED],
  ['preload libraries', `SET session_preload_libraries = 'dblink'`, DENIED],
  ['change system tables', 'SET allow_system_table_mods = on', DENIED],
  ['zero damaged pages', 'SET zero_damaged_pages = on', DENIED],
  ['increase the stack depth', `SET max_stack_depth = '7MB'`, DENIED],
  ['change the library path', `SET dynamic_library_path = '/tmp'`, DENIED],
  ['read large objects of other roles', 'SET lo_compat_privileges = on', DENIED],
  ['increase the number of worker processes', 'SET max_worker_processes = 64', '55P02'],
  ['reload the configuration', 'SELECT pg_reload_conf()', DENIED],
  ['rotate the log', 'SELECT pg_rotate_logfile()', DENIED],
  ['switch the WAL', 'SELECT pg_switch_wal()', DENIED],
  ['name a restore point', `SELECT pg_create_restore_point('x')`, DENIED],
  ['promote the server', 'SELECT pg_promote()', DENIED],
  ['force a checkpoint', 'CHECKPOINT', DENIED],
  ['reset statistics', 'SELECT pg_stat_reset()', DENIED],
  ['reset shared statistics', `SELECT pg_stat_reset_shared('bgwriter')`, DENIED],
  ['write memory contexts to the log', 'SELECT pg_log_backend_memory_contexts(pg_backend_pid())', DENIED],
  [
    "cancel the administrator's statement",
    `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'mooring' LIMIT 1`,
    DENIED,
  ],
  [
    "end the administrator's session",
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mooring' LIMIT 1`,
    DENIED,
  ],
  ["cancel a neighbour's statement", `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'victim'`, DENIED],
  ["end a neighbour's session", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'victim'`, DENIED],
  ...[
    ...['log_duration', 'log_lock_waits', 'log_statement_stats', 'log_executor_stats', 'wal_compression', 'track_activities'],
    ...['log_replication_commands', 'compute_query_id'],
  ].map((name) => [`switch on ${name}`, `SET ${name} = on`, DENIED] as const),
  ['keep log_statement for its sessions', `ALTER ROLE mallory SET log_statement = 'all'`, DENIED],
  ['log its errors', 'SET log_min_error_statement = error', DENIED],
  ['log its temporary files', 'SET log_temp_files = 0', DENIED],
  ['log more WAL', `SET wal_consistency_checking = 'all'`, DENIED],
  ['delay the detection of deadlocks', `SET deadlock_timeout = '1min'`, DENIED],
  ['delay commits', 'SET commit_delay = 100000', DENIED],
  ['log backtraces', `SET backtrace_functions = 'x'`, DENIED],
  ['reset the configuration', 'ALTER SYSTEM RESET ALL', DENIED],
  // Replication, and objects that outlive a session.
  ['make a replication slot', `SELECT pg_create_physical_replication_slot('s')`, DENIED],
  ['make a logical slot', `SELECT pg_create_logical_replication_slot('s', 'test_decoding')`, DENIED],
  ['make a replication origin', `SELECT pg_replication_origin_create('o')`, DENIED],
  ['subscribe', `CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1' PUBLICATION p`, DENIED],
  ['publish everything', 'CREATE PUBLICATION p FOR ALL TABLES', DENIED],
  ['prepare a transaction', `BEGIN; SELECT 1; PREPARE TRANSACTION 'x'`, '55000'],
  ['use a replication origin', `SELECT pg_replication_origin_session_setup('o')`, DENIED],
]

describe.each(SERIES)('PostgreSQL %s: a tenant', (series) => {
  const at = neighbours(series)

  test.each(REFUSED)('cannot %s', async (_, sql, sqlState) => {
    const client = await at.asMallory()
    expect(await rejection(client.query(sql))).toMatchObject({ code: sqlState })
    await client.end()
  })

  test('cannot spill more to disk than the limit', async () => {
    const root = await at.bench.server.client()
    await root.query(`ALTER SYSTEM SET temp_file_limit = '1MB'`)
    await root.query('SELECT pg_reload_conf()')
    const client = await at.asMallory()
    await client.query(`SET work_mem = '64kB'`)
    expect(
      await rejection(client.query('SELECT count(*) FROM (SELECT g FROM generate_series(1, 1000000) g ORDER BY -g) s')),
    ).toMatchObject({
      code: '53400',
    })
    await root.query('ALTER SYSTEM RESET temp_file_limit')
    await root.query('SELECT pg_reload_conf()')
  })

  test('cannot get more parallel workers than the limit of the server, and its neighbour still runs queries', async () => {
    const client = await at.asMallory()
    await client.query(`
      CREATE TABLE large AS SELECT g FROM generate_series(1, 300000) g; ANALYZE large; ALTER TABLE large SET (parallel_workers = 64);
      SET max_parallel_workers = 64; SET max_parallel_workers_per_gather = 64; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0`)
    const { rows } = await client.query<{ 'QUERY PLAN': string }>('EXPLAIN ANALYZE SELECT count(*) FROM large')
    const launched = rows
      .map((row) => /Workers Launched: (\d+)/.exec(row['QUERY PLAN'])?.[1])
      .find((count) => count !== undefined)
    expect(Number(launched)).toBeLessThanOrEqual(4)
    expect(Number(launched)).toBeGreaterThan(0)
    await (await at.asVictim()).query('SELECT count(*) FROM secret')
  })

  test('cannot write its statements to the log', async () => {
    const client = await at.asMallory()
    await client.query(`
      SET client_min_messages = debug5; SET debug_print_parse = on; SET debug_print_plan = on; SET debug_print_rewritten = on;
      SET trace_notify = on; SET trace_sort = on`)
    await client.query(`SELECT 'in-a-statement' AS t ORDER BY 1`)
    await rejection(client.query(`SELECT 'in-an-error'::int`))
    await client.query(`DO $$ BEGIN RAISE LOG 'last-line'; END $$`)
    await expect.poll(() => at.bench.server.log()).toContain('last-line')
    expect(at.bench.server.log()).not.toMatch(/in-a-statement|in-an-error/)
    await client.end()
  })
})
