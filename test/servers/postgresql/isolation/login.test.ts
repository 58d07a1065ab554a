import pg from 'pg'
import { expect, test, describe } from 'vitest'
import { DENIED, neighbours, rejection } from '../../../support/postgresql/engine.ts'
import { SERIES } from '../../../support/postgresql/postgres.ts'
import { dialling, TIMEOUTS } from '../../../../operator/engines/postgresql/connection.ts'

describe.each(SERIES)('PostgreSQL %s: a tenant', (series) => {
  const at = neighbours(series)

  test.each(['victim', 'postgres', 'template0', 'template1'])('cannot connect to %s', async (database) => {
    expect(await rejection(at.bench.as(at.mallory, database))).toMatchObject({ code: '28000' })
  })

  test.each(['victim', 'postgres', 'template1'])('has no privileges on %s, independent of the access rules', async (database) => {
    const client = await at.asMallory()
    const { rows } = await client.query(`SELECT has_database_privilege($1, 'CONNECT, TEMPORARY, CREATE') AS allowed`, [database])
    expect(rows).toEqual([{ allowed: false }])
  })

  test('has no privilege to create objects in the databases of the server', async () => {
    for (const database of ['postgres', 'template1']) {
      const root = await at.bench.server.client({ database })
      const { rows } = await root.query(`SELECT has_schema_privilege('mallory', 'public', 'CREATE') AS allowed`)
      expect(rows).toEqual([{ allowed: false }])
    }
  })

  test('cannot connect to a spare database', async () => {
    await at.bench.settle(1)
    const root = await at.bench.server.client()
    const { rows } = await root.query<{ datname: string; allowed: boolean }>(
      `SELECT datname, has_database_privilege('mallory', datname, 'CONNECT') AS allowed FROM pg_database WHERE datname LIKE 'pool%'`,
    )
    expect(rows).toMatchObject([{ allowed: false }])
    expect(await rejection(at.bench.as(at.mallory, rows[0]?.datname))).toMatchObject({ code: '28000' })
  })

  test('cannot connect with a wrong password, nor as the administrator', async () => {
    expect(await rejection(at.bench.as({ ...at.mallory, password: 'wrong' }))).toMatchObject({ code: '28P01' })
    expect(await rejection(at.bench.as({ ...at.mallory, name: 'mooring' }, 'postgres'))).toMatchObject({ code: '28P01' })
  })

  test.each(['true', 'database'])('cannot open a replication connection (%s)', async (replication) => {
    const dial = dialling(at.bench.server.target, TIMEOUTS)
    const config = { ...dial, user: 'mallory', password: at.mallory.password, database: 'mallory', replication }
    const client = new pg.Client(config)
    client.on('error', () => undefined)
    expect(await rejection(client.connect())).toMatchObject({ code: expect.stringMatching(/^(28000|42501|53300)$/) as string })
    await client.end()
  })

  test('cannot connect to the database of a neighbour that made it a member of its role', async () => {
    const client = await at.asVictim()
    const refused = await rejection(client.query('GRANT victim TO mallory'))
    // From 15 on PostgreSQL rejects this GRANT.
    if (series === '14') expect(refused).toBeUndefined()
    else expect(refused).toMatchObject({ code: DENIED })
    expect(await rejection(at.bench.as(at.mallory, 'victim'))).toMatchObject({ code: '28000' })
    if (series === '14') await client.query('REVOKE victim FROM mallory')
  })

  test('cannot open more connections than its limit, and its neighbour still connects', async () => {
    const root = await at.bench.server.client()
    await root.query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'mallory'`)
    for (let i = 0; i < 12; i++) await at.asMallory()
    expect(await rejection(at.asMallory())).toMatchObject({ code: '53300' })
    await (await at.asVictim()).end()
    await root.query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'mallory'`)
  })
})
