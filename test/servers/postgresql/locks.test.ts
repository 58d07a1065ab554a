import type pg from 'pg'
import { beforeEach, describe, expect, test } from 'vitest'
import { LIMITS, postgresqlBench } from '../../support/postgresql/engine.ts'
import { inTime } from '../../support/in-time.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import type { EngineAdmin, Tenant } from '../../../operator/engines/engine.ts'

describe.each(SERIES)('PostgreSQL %s: locks of a tenant', (series) => {
  const bench = postgresqlBench(series)
  let round = 0
  let mallory: Tenant
  let leaving: Tenant

  beforeEach(async () => {
    round += 1
    mallory = await bench.tenant(`mallory${round}`)
    leaving = await bench.tenant(`leaving${round}`)
  })

  const holdsOwnRole = async (tenant: Tenant): Promise<pg.Client> => {
    const client = await bench.as(tenant)
    await client.query(`BEGIN; ALTER ROLE ${tenant.name} SET work_mem = '8MB'; ALTER ROLE ${tenant.name} PASSWORD 'x'`)
    return client
  }

  const work: readonly (readonly [string, (admin: EngineAdmin, tenant: Tenant) => Promise<void>])[] = [
    ['disableLogin', (admin, { name }) => admin.disableLogin(name)],
    ['setPassword', (admin, tenant) => admin.setPassword({ ...tenant, password: 'another' })],
    ['reset', (admin, { name }) => admin.reset(name, {})],
    ['claim', (admin, tenant) => admin.claim(tenant, LIMITS, {})],
    ['drop', (admin, { name }) => admin.drop(name)],
  ]

  test.each(work)('on its own role do not block %s', async (_, act) => {
    await holdsOwnRole(mallory)
    await inTime(act(bench.admin, mallory))
  })

  test('taken repeatedly by many sessions do not block DELETE', async () => {
    let isOver = false
    const hold = async (): Promise<void> => {
      while (!isOver) await holdsOwnRole(mallory).catch(() => undefined)
    }
    await holdsOwnRole(mallory)
    const holders = Array.from({ length: 6 }, hold)
    await inTime(bench.admin.drop(mallory.name))
    isOver = true
    await Promise.all(holders)
  })

  test.each([
    ['a grant', 'GRANT SELECT ON t TO'],
    ['a default privilege', 'ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO'],
    ['a policy', 'CREATE POLICY p ON t TO'],
  ])('on a neighbour by %s do not block DELETE of the neighbour', async (_, sql) => {
    const client = await bench.as(mallory)
    await client.query('CREATE TABLE t (n int)')
    await client.query(`BEGIN; ${sql} ${leaving.name}`)
    await inTime(bench.admin.drop(leaving.name))
  })

  test('on the databases of neighbours, templates and spares block neither DELETE nor claims', async () => {
    await bench.settle(1)
    const client = await bench.as(mallory)
    const { rows } = await client.query<{ name: string }>('SELECT datname AS name FROM pg_database')
    await client.query(
      `BEGIN; ${rows.map(({ name }) => `ALTER ROLE ${mallory.name} IN DATABASE ${name} SET work_mem = '8MB'`).join('; ')}`,
    )
    await inTime(bench.tenant(`claimed${round}`))
    await client.query(`ROLLBACK; BEGIN; ALTER ROLE ${mallory.name} IN DATABASE ${leaving.name} SET work_mem = '8MB'`)
    await inTime(bench.admin.drop(leaving.name))
  })

  test('on a table with a grant to the neighbour do not block DELETE of the neighbour', async () => {
    const client = await bench.as(mallory)
    await client.query(`CREATE TABLE t (n int); GRANT SELECT ON t TO ${leaving.name}`)
    await client.query('BEGIN; LOCK TABLE t')
    await inTime(bench.admin.drop(leaving.name))
  })

  test('in a chain of waiting sessions do not block disableLogin', async () => {
    const [first, second, third] = await Promise.all([mallory, mallory, mallory].map((tenant) => bench.as(tenant)))
    await first?.query('BEGIN; SELECT pg_advisory_lock(1)')
    await second?.query('BEGIN; SELECT pg_advisory_lock(2)')
    const waitsForFirst = second?.query('SELECT pg_advisory_lock(1)').catch(() => undefined)
    await third?.query(`BEGIN; ALTER ROLE ${mallory.name} PASSWORD 'x'`)
    const waitsForSecond = third?.query('SELECT pg_advisory_lock(2)').catch(() => undefined)
    await inTime(bench.admin.disableLogin(mallory.name))
    await Promise.all([waitsForFirst, waitsForSecond])
  })

  test('of a session on a template do not delay the error that the template is in use', async () => {
    await holdsOwnRole(mallory)
    const copy = { name: `copy${round}`, password: 'password-of-copy' }
    await expect(inTime(bench.admin.claim(copy, LIMITS, { template: mallory.name }))).rejects.toMatchObject({
      code: 'template_in_use',
    })
  })

  test('that delay many statements of the administrator do not block claims of other tenants', async () => {
    await bench.settle(0)
    const held = await Promise.all(Array.from({ length: 8 }, (_, index) => bench.tenant(`held${round}x${index}`)))
    await Promise.all(held.map(holdsOwnRole))
    const granter = await bench.as(mallory)
    await granter.query('CREATE TABLE t (n int)')
    await granter.query(`BEGIN; ${held.map(({ name }) => `GRANT SELECT ON t TO ${name}`).join('; ')}`)
    const disabled = held.map(({ name }) => inTime(bench.admin.disableLogin(name)))
    const claimed = Array.from({ length: 5 }, (_, index) => inTime(bench.tenant(`claimed${round}x${index}`)))
    const [first] = await Promise.all(claimed)
    await Promise.all(disabled)
    if (first) await bench.admin.verify(first)
  })

  test('that block no statement of the administrator stay', async () => {
    const client = await bench.as(mallory)
    await client.query('CREATE TABLE t (n int); BEGIN; LOCK TABLE t')
    const holder = await holdsOwnRole(leaving)
    await bench.admin.disableLogin(leaving.name)
    await expect(holder.query('SELECT 1')).rejects.toThrow()
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  })
})
