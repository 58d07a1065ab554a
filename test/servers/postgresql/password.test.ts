import { describe, expect, test } from 'vitest'
import { LIMITS, postgresqlBench, DENIED } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'

/** invalid_password */
const WRONG = { code: '28P01' }

describe.each(SERIES)('PostgreSQL %s: a rotation', (series) => {
  const bench = postgresqlBench(series)

  test('ends every session of the old password', async () => {
    const tenant = await bench.tenant('rotated')
    const sessions = [await bench.as(tenant), await bench.as(tenant)]
    await bench.admin.setPassword({ ...tenant, password: 'second' })
    for (const session of sessions) await expect(session.query('SELECT 1')).rejects.toThrow()
    await expect(bench.as(tenant)).rejects.toMatchObject(WRONG)
    await bench.admin.verify({ ...tenant, password: 'second' })
  })

  test('is not undone by sessions that set another password all the time', async () => {
    const tenant = await bench.tenant('contested')
    let isOver = false
    const contend = async (): Promise<void> => {
      const client = await bench.as(tenant).catch(() => undefined)
      while (client && !isOver) await client.query(`ALTER ROLE contested PASSWORD 'third'`)
    }
    const contenders = Array.from({ length: 4 }, () => contend().catch(() => undefined))
    await bench.admin.setPassword({ ...tenant, password: 'second' })
    isOver = true
    await Promise.all(contenders)
    await bench.admin.verify({ ...tenant, password: 'second' })
    await expect(bench.as({ ...tenant, password: 'third' })).rejects.toMatchObject(WRONG)
  })

  test('is verified independent of the settings that the tenant made for its role', async () => {
    const tenant = await bench.tenant('odd')
    const client = await bench.as(tenant)
    for (const owner of ['ROLE odd', 'ROLE odd IN DATABASE odd']) {
      await client.query(`ALTER ${owner} SET local_preload_libraries = 'nothing'`)
      await client.query(`ALTER ${owner} SET statement_timeout = 1`)
      await client.query(`ALTER ${owner} SET idle_session_timeout = 1`)
      await client.query(`ALTER ${owner} SET client_encoding = 'SQL_ASCII'`)
      await client.query(`ALTER ${owner} SET role = 'pg_monitor'`)
      await client.query(`ALTER ${owner} SET client_min_messages = 'debug5'`)
      await client.query(`ALTER ${owner} SET search_path = 'nothing'`)
    }
    await expect(client.query(`ALTER ROLE odd SET session_preload_libraries = 'nothing'`)).rejects.toMatchObject({ code: DENIED })
    await expect(bench.as(tenant)).rejects.toMatchObject({ code: '58P01' })
    await bench.admin.setPassword({ ...tenant, password: 'second' })
    await bench.admin.verify({ ...tenant, password: 'second' })
  })

  test('removes the members of the role, which could set its password', async () => {
    const [tenant, mallory] = [await bench.tenant('joined'), await bench.tenant('mallory')]
    const grant = (await bench.as(tenant)).query('GRANT joined TO mallory')
    // From 15 on PostgreSQL rejects this GRANT.
    if (series === '15') return expect(grant).rejects.toMatchObject({ code: DENIED })
    await grant
    await bench.admin.setPassword({ ...tenant, password: 'second' })
    const client = await bench.as(mallory)
    await expect(client.query(`SET ROLE joined; ALTER ROLE joined PASSWORD 'third'`)).rejects.toMatchObject({ code: DENIED })
    await bench.admin.verify({ ...tenant, password: 'second' })
  })

  test('leaves a disabled login disabled', async () => {
    const tenant = await bench.tenant('shut')
    await bench.admin.disableLogin('shut')
    await bench.admin.setPassword({ ...tenant, password: 'second' })
    expect(await bench.admin.find('shut')).toEqual({ database: true, login: 'disabled' })
    await bench.admin.enableLogin('shut')
    await bench.admin.verify({ ...tenant, password: 'second' })
  })

  test('that was interrupted is found and can be repeated', async () => {
    const tenant = await bench.tenant('halfway')
    const root = await bench.server.client()
    await root.query(`UPDATE pg_authid SET rolvaliduntil = '-infinity' WHERE rolname = 'halfway'`)
    await expect(bench.as(tenant)).rejects.toMatchObject(WRONG)
    expect(await bench.admin.findChangedPasswords([tenant])).toEqual(['halfway'])
    await bench.admin.setPassword(tenant)
    await bench.admin.verify(tenant)
    await root.query(`UPDATE pg_authid SET rolvaliduntil = '-infinity' WHERE rolname = 'halfway'`)
    await bench.admin.claim(tenant, LIMITS, {})
    await bench.admin.verify(tenant)
  })

  test.each([
    ['another one', `'its own'`],
    ['NULL', 'NULL'],
    ['an MD5 hash', `'md5' || md5('password-of-changed' || 'changed')`],
  ])('is due after the tenant changed its password to %s', async (_, password) => {
    const tenant = await bench.tenant('changed')
    const honest = await bench.tenant('honest')
    expect(await bench.admin.findChangedPasswords([tenant, honest])).toEqual([])
    const client = await bench.as(tenant)
    await client.query(`DO $$ BEGIN EXECUTE format('ALTER ROLE changed PASSWORD %L', ${password}); END $$`)
    expect(await bench.admin.findChangedPasswords([tenant, honest])).toEqual(['changed'])
    await bench.admin.setPassword(tenant)
    expect(await bench.admin.findChangedPasswords([tenant, honest])).toEqual([])
    // The cached verifier of one password does not match another password.
    expect(await bench.admin.findChangedPasswords([{ ...honest, password: 'other' }])).toEqual(['honest'])
  })
})
