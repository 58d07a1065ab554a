import { describe, expect, test } from 'vitest'
import { EXPORTER_USER } from '../../../operator/engines/exporter.ts'
import { expectReplacedAndDropped } from '../../support/exporter-login.ts'
import { DENIED, postgresqlBench } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'

describe.each(SERIES)('the login of an exporter of PostgreSQL %s', (series) => {
  const bench = postgresqlBench(series)
  const logIn = (password: string, database = 'postgres') => bench.server.client({ user: EXPORTER_USER, password, database })

  test('reads statistics and no data, and accepts only its last password until it is dropped', async () => {
    const { admin } = bench
    const tenant = await bench.tenant('secretive')
    await admin.monitor('first')
    await admin.monitor('first')
    const session = await logIn('first')
    const { rows } = await session.query<{ size: string }>(`SELECT pg_database_size('secretive') AS size`)
    expect(Number(rows[0]?.size)).toBeGreaterThan(0)
    expect((await session.query(`SELECT FROM pg_stat_activity WHERE query <> ''`)).rowCount).toBeGreaterThan(0)
    await expect(session.query('SELECT * FROM pg_authid')).rejects.toMatchObject({ code: DENIED })
    await expect(session.query('CREATE TABLE public.own ()')).rejects.toMatchObject({ code: DENIED })
    await expect(logIn('first', tenant.name)).rejects.toThrow()

    await expectReplacedAndDropped({ admin, logIn })
    await expect(session.query('SELECT 1')).rejects.toThrow()
  })

  test('is of no use after its removal, whatever a tenant granted it, until it gets a password again', async () => {
    const { admin } = bench
    const tenant = await bench.tenant('generous')
    await admin.monitor('first')
    await (await bench.as(tenant)).query(`CREATE TABLE gift (); GRANT SELECT ON gift TO ${EXPORTER_USER}`)
    await admin.monitor(undefined)
    await admin.monitor(undefined)
    await expect(logIn('first')).rejects.toThrow()

    await admin.monitor('second')
    const session = await logIn('second')
    expect((await session.query('SELECT FROM pg_stat_activity')).rowCount).toBeGreaterThan(0)
  })
})
