import { describe, expect, test } from 'vitest'
import { LIMITS, postgresqlBench } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import { ENGINES } from '../../../operator/engines/index.ts'
import { postgresql, postgresqlAdmin } from '../../../operator/engines/postgresql/postgresql.ts'
import { patient } from '../../support/patience.ts'

describe.each(SERIES)('PostgreSQL %s', (series) => {
  const bench = postgresqlBench(series)
  const code = (expected: string): Error => expect.objectContaining({ code: expected }) as Error

  test('reports its version', async () => {
    expect(await bench.admin.version()).toBe(bench.server.version)
  })

  test('a claim from the warm pool creates a working login and takes one spare', async () => {
    await bench.settle(2)
    const tenant = await bench.tenant('fromthepool')
    await bench.admin.verify(tenant)
    const catalog = await bench.admin.catalog()
    expect(catalog.spare).toBe(1)
    expect(catalog.tenants.get('fromthepool')).toEqual({ database: true, login: 'enabled' })
  })

  test('a claim from an empty pool creates a working login', async () => {
    await bench.settle(0)
    await bench.admin.verify(await bench.tenant('fromnothing'))
    expect((await bench.admin.catalog()).leftovers).toEqual([])
  })

  test('claims succeed while a session is open in template1', async () => {
    await bench.settle(0)
    const inside = await bench.server.client({ database: 'template1' })
    await bench.admin.verify(await bench.tenant('besides'))
    await inside.end()
    await bench.admin.verify(await bench.tenant('afterwards'))
  })

  test('twenty concurrent claims from a pool of five each get their own database', { timeout: patient(240_000) }, async () => {
    await bench.settle(5)
    const tenants = await Promise.all(Array.from({ length: 20 }, (_, i) => bench.tenant(`crowd${i}`)))
    for (const tenant of tenants) await bench.admin.verify(tenant)
    expect(await bench.admin.catalog()).toMatchObject({ spare: 0, leftovers: [] })
  })

  test('concurrent claims of two processes never take the same spare', { timeout: patient(240_000) }, async () => {
    await bench.settle(4)
    await using other = postgresqlAdmin(bench.server.target)
    await other.catalog()
    const names = ['onea', 'oneb', 'onec', 'oned']
    await Promise.all(
      names.flatMap((name) => [bench.tenant(name), other.claim({ name: `other${name}`, password: 'secret' }, LIMITS, {})]),
    )
    const { tenants } = await bench.admin.catalog()
    for (const name of names.flatMap((name) => [name, `other${name}`])) {
      expect(tenants.get(name)).toEqual({ database: true, login: 'enabled' })
    }
  })

  test('a repeated claim keeps the data and restores password, limit and login', async () => {
    const tenant = await bench.tenant('twice')
    const client = await bench.as(tenant)
    await client.query('CREATE TABLE kept AS SELECT 1 AS n')
    await bench.admin.disableLogin('twice')
    const renewed = { ...tenant, password: 'another-password' }
    await bench.admin.claim(renewed, { connections: 3 }, {})
    await bench.admin.verify(renewed)
    expect((await (await bench.as(renewed)).query('SELECT n FROM kept')).rows).toEqual([{ n: 1 }])
    const root = await bench.server.client()
    expect((await root.query(`SELECT rolconnlimit FROM pg_roles WHERE rolname = 'twice'`)).rows).toEqual([{ rolconnlimit: 3 }])
  })

  test.each([
    { left: 'only the login', lost: 'DROP DATABASE half WITH (FORCE)' },
    { left: 'only the database', lost: 'DROP OWNED BY half; DROP ROLE half' },
  ])('a claim completes a tenant that has $left', async ({ lost }) => {
    await bench.tenant('half')
    const root = await bench.server.client()
    const inside = await bench.server.client({ database: 'half' })
    if (lost.startsWith('DROP OWNED')) {
      await inside.query('ALTER SCHEMA public OWNER TO CURRENT_USER')
      await inside.end()
    }
    await root.query(lost)
    const tenant = await bench.tenant('half')
    await bench.admin.verify(tenant)
    await (await bench.as(tenant)).query('CREATE TABLE public.mine (n int); CREATE SCHEMA also')
    await bench.admin.drop('half')
  })

  test('verify rejects a wrong password, a disabled login and an absent tenant', async () => {
    const tenant = await bench.tenant('refused')
    await expect(bench.admin.verify({ ...tenant, password: 'wrong' })).rejects.toThrow(code('login_refused'))
    await bench.admin.disableLogin('refused')
    await expect(bench.admin.verify(tenant)).rejects.toThrow(code('login_refused'))
    await expect(bench.admin.verify({ name: 'absent', password: 'x' })).rejects.toThrow(code('login_refused'))
  })

  test('disableLogin ends the sessions of a login, and enableLogin makes it work again', async () => {
    const tenant = await bench.tenant('switched')
    const client = await bench.as(tenant)
    await bench.admin.disableLogin('switched')
    await expect(client.query('SELECT 1')).rejects.toThrow()
    expect(await bench.admin.find('switched')).toEqual({ database: true, login: 'disabled' })
    await bench.admin.enableLogin('switched')
    await bench.admin.verify(tenant)
  })

  test('setPassword makes the new password work and the old one fail', async () => {
    const tenant = await bench.tenant('rotated')
    const rotated = { ...tenant, password: 'the-next-one' }
    await bench.admin.setPassword(rotated)
    await bench.admin.verify(rotated)
    await expect(bench.admin.verify(tenant)).rejects.toThrow(code('login_refused'))
  })

  test.each(['enabled', 'disabled'] as const)('a reset empties the database and keeps the login %s', async (login) => {
    const tenant = await bench.tenant(`reset${login}`)
    const client = await bench.as(tenant)
    await client.query(`CREATE TABLE gone (n int); CREATE SCHEMA gone; ALTER ROLE ${tenant.name} SET statement_timeout = 1`)
    if (login === 'disabled') await bench.admin.disableLogin(tenant.name)
    await bench.admin.reset(tenant.name, {})
    await expect(client.query('SELECT 1')).rejects.toThrow()
    expect(await bench.admin.find(tenant.name)).toEqual({ database: true, login })
    await bench.admin.enableLogin(tenant.name)
    const again = await bench.as(tenant)
    expect((await again.query(`SELECT to_regclass('gone'), current_setting('statement_timeout') AS timeout`)).rows).toEqual([
      { to_regclass: null, timeout: '0' },
    ])
    await again.query('CREATE TABLE mine (n int); DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    await bench.settle(0)
    expect((await bench.admin.catalog()).leftovers).toEqual([])
  })

  test('a reset creates a missing database', async () => {
    const tenant = await bench.tenant('missing')
    await (await bench.server.client()).query('DROP DATABASE missing')
    await bench.admin.reset('missing', {})
    await bench.admin.verify(tenant)
  })

  test('empty files count towards the size, because each takes an inode', async () => {
    const client = await bench.as(await bench.tenant('crowded'))
    const size = async (): Promise<number> => (await bench.admin.sizes('all')).get('crowded') ?? 0
    const before = await size()
    await client.query(`DO $$ BEGIN FOR i IN 1..500 LOOP EXECUTE format('CREATE UNLOGGED TABLE t%s ()', i); END LOOP; END $$`)
    // Two files for each table, and less than 2 MiB of rows in the catalogs.
    expect((await size()) - before).toBeGreaterThan(1_000 * 8_192)
  })

  test('sizes returns the size of each tenant’s database', async () => {
    const tenant = await bench.tenant('sized')
    const before = (await bench.admin.sizes('all')).get('sized') ?? 0
    await (await bench.as(tenant)).query(`CREATE TABLE big AS SELECT repeat(md5(g::text), 30) FROM generate_series(1, 5000) g`)
    expect((await bench.admin.sizes('all')).get('sized')).toBeGreaterThan(before + 1_000_000)
    expect([...(await bench.admin.sizes('all')).keys()]).not.toContain('postgres')
  })

  test('the administrator reconnects after a crash of the server', async () => {
    const tenant = await bench.tenant('survivor')
    await bench.server.crash()
    await bench.admin.verify(tenant)
    expect(await bench.admin.find('survivor')).toEqual({ database: true, login: 'enabled' })
  })

  test('harden can be repeated', async () => {
    await bench.admin.harden()
  })

  test('the log contains no password, even of failed statements', async () => {
    const client = await bench.as(await bench.tenant('leaky'))
    await expect(client.query(`ALTER ROLE leaky PASSWORD 'hunter2hunter2' VALID UNTIL 'never'`)).rejects.toThrow()
    await expect(client.query(`ALTER ROLE leaky PASSWORD 'hunter2hunter2' 'hunter2hunter2'`)).rejects.toThrow()
    await bench.admin.setPassword({ name: 'leaky', password: 'hunter2hunter2' })
    await expect(bench.admin.setPassword({ name: 'nosuchlogin', password: 'hunter2hunter2' })).rejects.toThrow(
      code('engine_failed'),
    )
    expect(bench.server.log()).not.toContain('hunter2')
    expect(bench.server.log()).not.toContain('SCRAM')
  })

  test.each(['postgres', 'mooring; DROP DATABASE x', 'pool_0123456789abcdef'])(
    '%s cannot be dropped, reset or claimed',
    async (name) => {
      await expect(bench.admin.drop(name)).rejects.toThrow(code('engine_failed'))
      await expect(bench.admin.reset(name, {})).rejects.toThrow(code('engine_failed'))
      await expect(bench.admin.claim({ name, password: 'x' }, LIMITS, {})).rejects.toThrow(code('engine_failed'))
    },
  )
})

test('an unreachable server is reported as engine_unavailable, to the administrator and to a login', async () => {
  const target = { host: '127.0.0.1', port: 1, user: 'mooring', password: 'x' }
  await using admin = postgresql.admin(target)
  const unavailable = expect.objectContaining({ code: 'engine_unavailable' }) as Error
  await expect(admin.version()).rejects.toThrow(unavailable)
  await expect(admin.harden()).rejects.toThrow(unavailable)
  await expect(admin.verify({ name: 'a', password: 'x' })).rejects.toThrow(unavailable)
})

test.each([
  { caFile: undefined, host: '127.0.0.1', uri: 'postgresql://app:p%40ss%2F@127.0.0.1:5432/app' },
  {
    caFile: 'ca.crt',
    host: 'db.example.com',
    uri: 'postgresql://app:p%40ss%2F@db.example.com:5432/app?sslmode=verify-full&sslrootcert=ca.crt',
  },
  {
    caFile: '/a dir/ca',
    host: '::1',
    uri: 'postgresql://app:p%40ss%2F@[::1]:5432/app?sslmode=verify-full&sslrootcert=%2Fa%20dir%2Fca',
  },
])('uri returns a connection string to $host', ({ caFile, host, uri }) => {
  expect(postgresql.uri({ host, port: 5432, name: 'app', password: 'p@ss/', caFile })).toBe(uri)
})

test('ENGINES has PostgreSQL by its family', () => {
  expect(ENGINES.get('postgresql')).toBe(postgresql)
})
