import type { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Instance } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { login, query } from '../support/postgresql/sql.ts'

// operator/engines tests the isolation of tenants attempt by attempt; these tests check that an instance from the API has that isolation.

const deployment = openDeployment()
let mallory: Instance
let victim: Instance
let session: Client
beforeAll(async () => {
  victim = await (await deployment.namespace()).instance({ identifier: 'victim' })
  mallory = await (await deployment.namespace()).instance({ identifier: 'mallory' })
  session = await login(victim)
  await session.query('CREATE TABLE secret AS SELECT 42 AS answer')
})
afterAll(async () => {
  await session.end()
  await deployment[Symbol.asyncDispose]()
})

describe('a tenant cannot log in', () => {
  test.each([
    { where: "to another tenant's database", as: () => ({ ...mallory, name: victim.name }), code: '28000' },
    { where: 'as another tenant', as: () => ({ ...victim, password: mallory.password }), code: '28P01' },
    {
      where: 'as another tenant to its own database',
      as: () => ({ ...victim, password: mallory.password, name: mallory.name }),
      code: '28000',
    },
    { where: 'to postgres', as: () => ({ ...mallory, name: 'postgres' }), code: '28000' },
    { where: 'to template1', as: () => ({ ...mallory, name: 'template1' }), code: '28000' },
    { where: 'to template0', as: () => ({ ...mallory, name: 'template0' }), code: '28000' },
    // In cluster mode pg_hba.conf accepts no password of the administrator; in embedded mode the administrator has another password.
    {
      where: "as the server's admin",
      as: () => ({ ...mallory, user: 'mooring', name: 'postgres' }),
      code: expect.stringMatching(/^28(000|P01)$/) as string,
    },
    { where: 'with a wrong password', as: () => ({ ...mallory, password: 'x' }), code: '28P01' },
  ])('$where', async ({ as, code }) => {
    await expect(query(as(), 'SELECT 1')).rejects.toMatchObject({ code })
  })
})

describe('a tenant is not permitted to', () => {
  test.each([
    { do: 'read password hashes', sql: () => 'SELECT rolpassword FROM pg_authid' },
    { do: "read the size of another tenant's database", sql: () => `SELECT pg_database_size('${victim.name}')` },
    { do: 'run a program', sql: () => `COPY (SELECT 1) TO PROGRAM 'id'` },
    { do: 'read a file', sql: () => `SELECT pg_read_file('/etc/passwd')` },
    { do: 'copy from a file', sql: () => `CREATE TABLE f (t text); COPY f FROM '/etc/passwd'` },
    { do: 'export a large object', sql: () => `SELECT lo_export(lo_create(0), '/tmp/mallory')` },
    { do: 'load C', sql: () => `CREATE FUNCTION c() RETURNS int LANGUAGE c AS '/tmp/c.so', 'c'` },
    { do: 'become another tenant', sql: () => `SET ROLE ${victim.user}` },
    { do: 'become the admin', sql: () => 'SET SESSION AUTHORIZATION mooring' },
    { do: 'become a superuser', sql: () => `ALTER ROLE ${mallory.user} SUPERUSER` },
    { do: 'have more connections', sql: () => `ALTER ROLE ${mallory.user} CONNECTION LIMIT -1` },
    { do: 'make a role', sql: () => 'CREATE ROLE helper' },
    { do: "change another tenant's password", sql: () => `ALTER ROLE ${victim.user} PASSWORD 'x'` },
    { do: 'make a database', sql: () => 'CREATE DATABASE another' },
    { do: "copy another tenant's database", sql: () => `CREATE DATABASE another TEMPLATE ${victim.name}` },
    { do: "drop another tenant's database", sql: () => `DROP DATABASE ${victim.name}` },
    { do: 'unlimit its database', sql: () => `ALTER DATABASE ${mallory.name} CONNECTION LIMIT -1` },
    { do: 'drop its database', sql: () => `DROP DATABASE ${mallory.name}` },
    { do: 'change the server', sql: () => `ALTER SYSTEM SET work_mem = '1GB'` },
    { do: 'log statements', sql: () => `SET log_statement = 'all'` },
    { do: 'fill the disk with temporary files', sql: () => 'SET temp_file_limit = -1' },
    { do: 'skip triggers', sql: () => 'SET session_replication_role = replica' },
    {
      do: "end another tenant's session",
      sql: () => `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${victim.user}'`,
    },
    { do: 'make a replication slot', sql: () => `SELECT pg_create_physical_replication_slot('s')` },
    { do: 'subscribe', sql: () => `CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1' PUBLICATION p` },
    { do: 'install dblink', sql: () => 'CREATE EXTENSION dblink' },
    { do: 'install postgres_fdw', sql: () => 'CREATE EXTENSION postgres_fdw' },
    {
      do: 'trigger on events',
      sql: () =>
        `CREATE FUNCTION e() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION e()`,
    },
  ])('$do', async ({ sql }) => {
    await expect(query(mallory, sql())).rejects.toMatchObject({ code: '42501' })
  })
})

test('grants of a tenant on its database let no other tenant connect', async () => {
  await query(mallory, `GRANT ALL ON DATABASE ${mallory.name} TO PUBLIC`)
  await expect(query({ ...victim, name: mallory.name }, 'SELECT 1')).rejects.toMatchObject({ code: '28000' })
})

test('a tenant sees sessions of other tenants but never their queries', async () => {
  const rows = await query(mallory, `SELECT DISTINCT query FROM pg_stat_activity WHERE usename = '${victim.user}'`)
  expect(rows).toEqual([{ query: '<insufficient privilege>' }])
})

test('a tenant at its connection limit leaves connections for other tenants', async () => {
  const tries = await Promise.allSettled(Array.from({ length: 40 }, () => login(mallory)))
  const open = tries.flatMap((tried) => (tried.status === 'fulfilled' ? [tried.value] : []))
  const codes = tries.flatMap((tried) => (tried.status === 'rejected' ? [(tried.reason as { code?: string }).code] : []))
  try {
    expect(open.length).toBeGreaterThanOrEqual(10)
    expect(new Set(codes)).toEqual(new Set(['53300']))
    expect(await query(victim, 'SELECT answer FROM secret')).toEqual([{ answer: 42 }])
  } finally {
    await Promise.all(open.map((client) => client.end()))
  }
})

test('the other tenant kept its session and data through all these attempts', async () => {
  expect((await session.query('SELECT answer FROM secret')).rows).toEqual([{ answer: 42 }])
})
