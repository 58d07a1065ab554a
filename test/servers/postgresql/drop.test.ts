import { describe, expect, test } from 'vitest'
import { LIMITS, postgresqlBench } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'

describe.each(SERIES)('PostgreSQL %s drops', (series) => {
  const bench = postgresqlBench(series)

  async function expectGone(name: string): Promise<void> {
    expect(await bench.admin.find(name)).toEqual({ database: false, login: 'absent' })
    const client = await bench.server.client()
    const { rows } = await client.query(
      'SELECT datname FROM pg_database WHERE datname = $1 UNION ALL SELECT rolname FROM pg_roles WHERE rolname = $1',
      [name],
    )
    expect(rows).toEqual([])
  }

  test('a tenant with open sessions, transactions and settings of its own', async () => {
    const tenant = await bench.tenant('busy')
    const client = await bench.as(tenant)
    await client.query(`ALTER ROLE busy SET work_mem = '8MB'; ALTER ROLE busy IN DATABASE postgres SET work_mem = '8MB'`)
    await client.query('BEGIN; CREATE TABLE t (n int); LOCK TABLE t')
    await bench.admin.drop('busy')
    await expectGone('busy')
    await expect(client.query('SELECT 1')).rejects.toThrow()
  })

  test('an absent tenant without an error', async () => {
    await bench.admin.drop('never')
    await bench.tenant('oncemore')
    await bench.admin.drop('oncemore')
    await bench.admin.drop('oncemore')
  })

  test('a tenant in two concurrent calls, of which a failed one can be repeated', async () => {
    await bench.tenant('doubled')
    await Promise.allSettled([bench.admin.drop('doubled'), bench.admin.drop('doubled')])
    await bench.admin.drop('doubled')
    await expectGone('doubled')
  })

  test.each([
    { interference: 'grants it a table', sql: 'CREATE TABLE t (n int); GRANT SELECT ON t TO leaving' },
    { interference: 'grants it a column', sql: 'CREATE TABLE t (n int); GRANT SELECT (n) ON t TO leaving' },
    { interference: 'grants it a schema', sql: 'CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO leaving' },
    { interference: 'names it in a policy', sql: 'CREATE TABLE t (n int); CREATE POLICY p ON t TO leaving USING (true)' },
    { interference: 'grants it default privileges', sql: 'ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO leaving' },
    { interference: 'grants it a large object', sql: `SELECT lo_create(4711); GRANT SELECT ON LARGE OBJECT 4711 TO leaving` },
    {
      interference: 'grants it a table and locks that table',
      sql: 'CREATE TABLE t (n int); GRANT SELECT ON t TO leaving',
      hold: 'BEGIN; LOCK TABLE t',
    },
  ])('a tenant whose neighbour $interference', async ({ sql, hold }) => {
    const neighbour = await bench.tenant('neighbour')
    await bench.tenant('leaving')
    const client = await bench.as(neighbour)
    await client.query(sql)
    if (hold) await client.query(hold)
    await bench.admin.drop('leaving')
    await expectGone('leaving')
    if (!hold) await client.query('SELECT 1')
    await bench.admin.drop('neighbour')
  })

  test('a tenant whose neighbour makes it a member of its role, which 14 permits', async () => {
    const neighbour = await bench.tenant('neighbour')
    await bench.tenant('leaving')
    const granted = (await bench.as(neighbour)).query('GRANT neighbour TO leaving')
    if (series === '14') await granted
    else await expect(granted).rejects.toThrow('must have admin option')
    await bench.admin.drop('leaving')
    await expectGone('leaving')
    await bench.admin.drop('neighbour')
  })

  test('a template and its copy, in either order', async () => {
    for (const [first, second] of [
      ['model', 'copy'],
      ['copy', 'model'],
    ] as const) {
      const model = await bench.tenant('model')
      await (await bench.as(model)).query('CREATE TABLE t (n int)')
      await bench.admin.disableLogin('model')
      await bench.admin.claim({ name: 'copy', password: 'x' }, LIMITS, { template: 'model' })
      await bench.admin.drop(first)
      await expectGone(first)
      await bench.admin.drop(second)
      await expectGone(second)
    }
  })

  test('a tenant with an unfinished copy of a crashed operator', async () => {
    await bench.tenant('copied')
    const root = await bench.server.client()
    await root.query('CREATE DATABASE making_00000000000000aa TEMPLATE copied ALLOW_CONNECTIONS false')
    await bench.admin.drop('copied')
    await expectGone('copied')
    await bench.settle(0)
    expect((await bench.admin.catalog()).leftovers).toEqual([])
  })
})
