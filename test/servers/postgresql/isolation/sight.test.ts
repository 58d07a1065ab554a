import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { DENIED, neighbours, rejection } from '../../../support/postgresql/engine.ts'
import { SERIES } from '../../../support/postgresql/postgres.ts'

const REFUSED: readonly (readonly [attempt: string, sql: string, sqlState: string])[] = [
  ['read password hashes', 'SELECT rolpassword FROM pg_authid', DENIED],
  ['read password hashes of pg_shadow', 'SELECT passwd FROM pg_shadow', DENIED],
  ["read the size of a neighbour's database", `SELECT pg_database_size('victim')`, DENIED],
  ['read the access rules', 'SELECT * FROM pg_hba_file_rules', DENIED],
  ['read the configuration files', 'SELECT * FROM pg_file_settings', DENIED],
  ['read the path of the data directory', 'SHOW data_directory', DENIED],
  ['read the path of the access rules', 'SHOW hba_file', DENIED],
  ['read the build configuration', 'SELECT * FROM pg_config()', DENIED],
  ['read raw statistics', 'SELECT * FROM pg_statistic', DENIED],
  ['read raw large objects', 'SELECT * FROM pg_largeobject', DENIED],
  ['read shared memory', 'SELECT * FROM pg_shmem_allocations', DENIED],
  ['read memory contexts', 'SELECT * FROM pg_backend_memory_contexts', DENIED],
  ['read mappings of foreign servers', 'SELECT * FROM pg_user_mapping', DENIED],
  ['read connections of subscriptions', 'SELECT subconninfo FROM pg_subscription', DENIED],
]

const OPEN = [
  ['list databases', `SELECT FROM pg_database WHERE datname = 'victim'`],
  ['list logins', `SELECT FROM pg_roles WHERE rolname = 'victim'`],
  [
    'see which roles are connected',
    `SELECT FROM pg_stat_activity WHERE datname = 'victim' AND query = '<insufficient privilege>' LIMIT 1`,
  ],
  ['see statistics of other databases', `SELECT FROM pg_stat_database WHERE datname = 'victim'`],
  [
    'see locks in other databases',
    `SELECT FROM pg_locks WHERE database <> (SELECT oid FROM pg_database WHERE datname = 'mallory') LIMIT 1`,
  ],
  ['see the size of all databases together', `SELECT pg_tablespace_size('pg_default')`],
  ['switch its timeouts off', 'SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SELECT'],
  ['set large memory limits', `SET work_mem = '2GB'; SET temp_buffers = '1GB'; SELECT`],
  ['store settings of its role', `ALTER ROLE mallory SET work_mem = '2GB'; ALTER ROLE mallory RESET ALL; SELECT`],
  ['set its own password', `ALTER ROLE mallory PASSWORD 'password-of-mallory'; SELECT`],
  ['write large objects', `SELECT lo_from_bytea(0, 'x')`],
  ['write to the server log', `DO $$ BEGIN RAISE LOG 'hello'; END $$; SELECT`],
  ['take advisory locks, which use the shared lock table', 'SELECT pg_advisory_lock(1)'],
  ['read settings of other roles', `SELECT FROM pg_db_role_setting WHERE setrole = 'victim'::regrole`],
] as const

describe.each(SERIES)('PostgreSQL %s: a tenant', (series) => {
  const at = neighbours(series)

  beforeAll(async () => {
    await (await at.asVictim()).query(`ALTER ROLE victim SET work_mem = '8MB'`)
  })

  test.each(REFUSED)('cannot %s', async (_, sql, sqlState) => {
    const client = await at.asMallory()
    expect(await rejection(client.query(sql))).toMatchObject({ code: sqlState })
    await client.end()
  })

  test.each(OPEN)('can %s, which PostgreSQL cannot forbid', async (_, sql) => {
    const client = await at.asMallory()
    const result: pg.QueryResult | pg.QueryResult[] = await client.query(sql)
    expect([result].flat().at(-1)?.rowCount).toBe(1)
    await client.end()
  })
})
