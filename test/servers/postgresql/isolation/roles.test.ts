import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { DENIED, neighbours, rejection } from '../../../support/postgresql/engine.ts'
import { SERIES } from '../../../support/postgresql/postgres.ts'

const REFUSED: readonly (readonly [attempt: string, sql: string, sqlState: string])[] = [
  // Other roles.
  ['become the administrator', 'SET ROLE mooring', DENIED],
  ['become a neighbour', 'SET ROLE victim', DENIED],
  ['switch its session to a neighbour', 'SET SESSION AUTHORIZATION victim', DENIED],
  ['become pg_read_all_data', 'SET ROLE pg_read_all_data', DENIED],
  ['join pg_read_all_data', 'GRANT pg_read_all_data TO mallory', DENIED],
  ['join pg_execute_server_program', 'GRANT pg_execute_server_program TO mallory', DENIED],
  ['join a neighbour', 'GRANT victim TO mallory', DENIED],
  ['join the administrator', 'GRANT mooring TO mallory', DENIED],
  ['make a role', 'CREATE ROLE minion LOGIN', DENIED],
  ['drop a neighbour', 'DROP ROLE victim', DENIED],
  ["set a neighbour's password", `ALTER ROLE victim PASSWORD 'x'`, DENIED],
  ["set the administrator's password", `ALTER ROLE mooring PASSWORD 'x'`, DENIED],
  ["change a neighbour's settings", `ALTER ROLE victim SET work_mem = '64kB'`, DENIED],
  ['change the settings of all roles', `ALTER ROLE ALL SET work_mem = '64kB'`, DENIED],
  ['drop the objects of a neighbour', 'DROP OWNED BY victim', DENIED],
  ['give a table to a neighbour', 'CREATE TABLE gift (n int); ALTER TABLE gift OWNER TO victim', DENIED],
  ['take over the objects of a neighbour', 'REASSIGN OWNED BY victim TO mallory', DENIED],
  // Attributes of its own role and database.
  ['be a superuser', 'ALTER ROLE mallory SUPERUSER', DENIED],
  ['make databases', 'ALTER ROLE mallory CREATEDB', DENIED],
  ['make roles', 'ALTER ROLE mallory CREATEROLE', DENIED],
  ['replicate', 'ALTER ROLE mallory REPLICATION', DENIED],
  ['bypass row security', 'ALTER ROLE mallory BYPASSRLS', DENIED],
  ['lift its connection limit', 'ALTER ROLE mallory CONNECTION LIMIT -1', DENIED],
  ['change its expiry', `ALTER ROLE mallory VALID UNTIL 'infinity'`, DENIED],
  ['rename itself', 'ALTER ROLE mallory RENAME TO victor', '0A000'],
  ["lift the database's connection limit", 'ALTER DATABASE mallory CONNECTION LIMIT -1', DENIED],
  ['make its database a template', 'ALTER DATABASE mallory IS_TEMPLATE true', DENIED],
  ['change the settings of its database', `ALTER DATABASE mallory SET work_mem = '1GB'`, DENIED],
  ['own its database', 'ALTER DATABASE mallory OWNER TO mallory', DENIED],
  ['rename its database', 'ALTER DATABASE mallory RENAME TO mine', DENIED],
  ['drop its database', 'DROP DATABASE mallory', DENIED],
  ["drop a neighbour's database", 'DROP DATABASE victim', DENIED],
  ['make a database', 'CREATE DATABASE another', DENIED],
  ["copy a neighbour's database", 'CREATE DATABASE another TEMPLATE victim', DENIED],
  ['make a tablespace', `CREATE TABLESPACE space LOCATION '/tmp'`, DENIED],
  ['use the shared tablespace', 'CREATE TABLE t (n int) TABLESPACE pg_global', DENIED],
  ['disable its login', 'ALTER ROLE mallory NOLOGIN', DENIED],
  ['drop itself', 'DROP ROLE mallory', DENIED],
  ['comment on its role', `COMMENT ON ROLE mallory IS 'x'`, DENIED],
  ['comment on its database', `COMMENT ON DATABASE mallory IS 'x'`, DENIED],
  ['label itself', `SECURITY LABEL ON ROLE mallory IS 'x'`, '22023'],
  ['change the settings of all roles in its database', `ALTER ROLE ALL IN DATABASE mallory SET work_mem = '1MB'`, DENIED],
]

describe.each(SERIES)('PostgreSQL %s: a tenant', (series) => {
  const at = neighbours(series)

  test.each(REFUSED)('cannot %s', async (_, sql, sqlState) => {
    const client = await at.asMallory()
    expect(await rejection(client.query(sql))).toMatchObject({ code: sqlState })
    await client.end()
  })

  test.each([
    ['all roles', 'GRANT CONNECT ON DATABASE mallory TO PUBLIC'],
    ['a neighbour', 'GRANT ALL ON DATABASE mallory TO victim'],
  ])('cannot let %s connect to its database: the GRANT has no effect', async (_, sql) => {
    const client = await at.asMallory()
    const warned = once(client, 'notice')
    await client.query(sql)
    expect(await warned).toMatchObject([{ code: '01007' }])
    const { rows } = await client.query(
      `SELECT has_database_privilege('public', 'mallory', 'CONNECT') AS everybody, has_database_privilege('victim', 'mallory', 'CONNECT') AS victim`,
    )
    expect(rows).toEqual([{ everybody: false, victim: false }])
    await client.end()
  })
})
