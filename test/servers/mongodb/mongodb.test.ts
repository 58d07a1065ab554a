import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { ENGINES } from '../../../operator/engines/index.ts'
import { connect } from '../../../operator/engines/mongodb/connection.ts'
import { mongodb, mongodbAdmin } from '../../../operator/engines/mongodb/mongodb.ts'
import { LIMITS, mongodbBench } from '../../support/mongodb/engine.ts'
import { SERIES } from '../../support/mongodb/mongod.ts'
import { LATER } from '../../support/patience.ts'

const code = (expected: string): Error => expect.objectContaining({ code: expected }) as Error
/** Code of MongoDB for a command without privilege or without login. */
const UNAUTHORIZED_CODE = 13
const INTERRUPTED_CODE = 11601
const UNAUTHORIZED = expect.objectContaining({ code: UNAUTHORIZED_CODE }) as Error

describe.each(SERIES)('MongoDB for %s', (series) => {
  const bench = mongodbBench(series)

  test('reports its version', async () => {
    expect(await bench.admin.version()).toBe(bench.server.version)
  })

  test('a claim creates a working login with an empty database', async () => {
    const tenant = await bench.tenant('claimed')
    await bench.admin.verify(tenant)
    expect(await bench.admin.find('claimed')).toEqual({ database: true, login: 'enabled' })
    expect((await bench.admin.catalog()).tenants.get('claimed')).toEqual({ database: true, login: 'enabled' })
    const database = (await bench.as(tenant)).db('claimed')
    await database.collection('items').insertOne({ n: 1 })
    await database.command({ collMod: 'items', validator: { n: { $gt: 0 } } })
    expect(await database.collection('items').countDocuments()).toBe(1)
  })

  test('a transaction and a change stream of its own database work', async () => {
    const tenant = await bench.tenant('streams')
    const client = await bench.server.client({ user: tenant.name, password: tenant.password })
    const items = client.db('streams').collection('items')
    await items.insertOne({ n: 0 })
    const { resumeToken } = await (async () => {
      await using changes = client.db('streams').watch()
      await changes.tryNext()
      return changes
    })()
    await client.withSession((session) =>
      session.withTransaction(async () => {
        await items.insertOne({ n: 1 }, { session })
      }),
    )
    await using changes = client.db('streams').watch([], { resumeAfter: resumeToken })
    expect(await changes.next()).toMatchObject({ operationType: 'insert', fullDocument: { n: 1 } })
  })

  test('a drop removes database, role and login', async () => {
    const tenant = await bench.tenant('dropped')
    const client = await bench.as(tenant)
    await client.db('dropped').collection('items').insertOne({ n: 1 })
    await bench.admin.drop('dropped')
    expect(await bench.admin.find('dropped')).toEqual({ database: false, login: 'absent' })
    expect((await bench.admin.catalog()).tenants.has('dropped')).toBe(false)
    await expect(client.db('dropped').collection('items').insertOne({ n: 1 })).rejects.toThrow(UNAUTHORIZED)
    await expect(bench.admin.verify(tenant)).rejects.toThrow(code('login_refused'))
    await bench.admin.drop('dropped')
  })

  test.each([
    { left: 'only the login', lose: { collection: 'system.roles' } },
    { left: 'only the role', lose: { collection: 'system.users' } },
  ])('a claim completes a tenant that has $left, and keeps its data', async ({ lose }) => {
    await (await bench.as(await bench.tenant('half'))).db('half').collection('kept').insertOne({})
    await (await bench.server.client()).db('admin').collection(lose.collection).deleteOne({ db: 'half' })
    const tenant = await bench.tenant('half')
    await bench.admin.verify(tenant)
    expect(await (await bench.as(tenant)).db('half').collection('kept').countDocuments()).toBe(1)
    await bench.admin.drop('half')
  })

  test('twenty concurrent claims each get their own database', async () => {
    const tenants = await Promise.all(Array.from({ length: 20 }, (_, i) => bench.tenant(`crowd${i}`)))
    for (const tenant of tenants) await bench.admin.verify(tenant)
    expect(await bench.admin.catalog()).toMatchObject({ spare: 0, leftovers: [] })
  })

  test('a drop is completed after a crash between any of its steps', async () => {
    await (await bench.as(await bench.tenant('partly'))).db('partly').collection('items').insertOne({})
    const root = await bench.server.client()
    await root.db('partly').dropDatabase()
    await root.db('admin').collection('system.roles').deleteOne({ db: 'partly' })
    expect((await bench.admin.catalog()).tenants.get('partly')).toEqual({ database: true, login: 'enabled' })
    await bench.admin.drop('partly')
    await root.db('partly').collection('orphan').insertOne({})
    expect((await bench.admin.catalog()).tenants.get('partly')).toEqual({ database: true, login: 'absent' })
    await bench.admin.drop('partly')
    expect((await bench.admin.catalog()).tenants.has('partly')).toBe(false)
  })

  test('a drop ends operations and transactions that would keep or make the database', async () => {
    const tenant = await bench.tenant('busy')
    const [idle, writer] = [await bench.as(tenant), await bench.as(tenant)]
    await idle.db('busy').collection('items').insertOne({ n: 0 })
    const session = idle.startSession()
    session.startTransaction()
    await idle.db('busy').collection('items').insertOne({ n: 1 }, { session })
    const work = (async () => {
      for (let n = 0; ; n++) await writer.db('busy').collection(`made${n}`).insertOne({ n })
    })()
    // A statement that runs when the drop ends the tenant's operations is interrupted; one that begins later is not authorized.
    const refused = expect(work).rejects.toMatchObject({
      code: expect.toBeOneOf([UNAUTHORIZED_CODE, INTERRUPTED_CODE]) as number,
    })
    await bench.admin.drop('busy')
    await refused
    expect(await bench.admin.find('busy')).toEqual({ database: false, login: 'absent' })
    await session.endSession()
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
    await client.db('switched').collection('items').insertOne({})
    await bench.admin.disableLogin('switched')
    await expect(client.db('switched').collection('items').findOne()).rejects.toThrow(UNAUTHORIZED)
    expect(await bench.admin.find('switched')).toEqual({ database: true, login: 'disabled' })
    await bench.admin.enableLogin('switched')
    await bench.admin.verify(tenant)
    // A session of before stays logged out.
    await expect(client.db('switched').collection('items').findOne()).rejects.toThrow(UNAUTHORIZED)
  })

  test.each(['enabled', 'disabled'] as const)('a reset empties the database and keeps the login %s', async (login) => {
    const tenant = await bench.tenant(`reset${login}`)
    const client = await bench.as(tenant)
    await client.db(tenant.name).collection('gone').insertOne({})
    await client.db(tenant.name).createCollection('seen', { viewOn: 'gone', pipeline: [] })
    if (login === 'disabled') await bench.admin.disableLogin(tenant.name)
    await bench.admin.reset(tenant.name, {})
    expect(await bench.admin.find(tenant.name)).toEqual({ database: true, login })
    await bench.admin.enableLogin(tenant.name)
    const again = await bench.as(tenant)
    expect(await again.db(tenant.name).listCollections().toArray()).toEqual([])
    await again.db(tenant.name).collection('mine').insertOne({})
  })

  test('a reset without a login fails, and one of a dropped database succeeds', async () => {
    await expect(bench.admin.reset('nobody', {})).rejects.toThrow(code('engine_failed'))
    const tenant = await bench.tenant('emptied')
    await (await bench.as(tenant)).db('emptied').dropDatabase()
    await bench.admin.reset('emptied', {})
    await bench.admin.verify(tenant)
  })

  test('sizes returns the size of each tenant’s database, with a share for each collection', async () => {
    const tenant = await bench.tenant('sized')
    const client = await bench.as(tenant)
    const db = client.db('sized')
    for (let n = 0; n < 20; n++) await db.createCollection(`empty${n}`)
    const sizes = await bench.admin.sizes('all')
    expect(sizes.get('sized')).toBeGreaterThan(40 * 65_536)
    expect([...sizes.keys()]).not.toContain('admin')
    await db.collection('big').insertMany(Array.from({ length: 500 }, () => ({ text: randomBytes(8_000).toString('base64') })))
    await bench.server.command('admin', { fsync: 1 })
    expect((await bench.admin.sizes('busy')).get('sized')).toBeGreaterThan((sizes.get('sized') ?? 0) + 3_000_000)
    await client.close()
    await vi.waitFor(async () => expect((await bench.admin.sizes('busy')).has('sized')).toBe(false), LATER)
  })

  test('the administrator reconnects after a crash of the server', async () => {
    const tenant = await bench.tenant('survivor')
    await (await bench.as(tenant)).db('survivor').collection('kept').insertOne({})
    await bench.server.crash()
    await bench.admin.verify(tenant)
    expect(await bench.admin.find('survivor')).toEqual({ database: true, login: 'enabled' })
    expect(await (await bench.as(tenant)).db('survivor').collection('kept').countDocuments()).toBe(1)
  })

  test.each(['admin', 'local', 'config', 'mooring; x', 'Upper', 'with_underscore'])(
    '%s cannot be dropped, reset or claimed',
    async (name) => {
      await expect(bench.admin.drop(name)).rejects.toThrow(code('engine_failed'))
      await expect(bench.admin.reset(name, {})).rejects.toThrow(code('engine_failed'))
      await expect(bench.admin.claim({ name, password: 'x' }, LIMITS, {})).rejects.toThrow(code('engine_failed'))
    },
  )

  test('a repeated claim keeps the data and restores password, limit and login', async () => {
    const tenant = await bench.tenant('twice')
    await (await bench.as(tenant)).db('twice').collection('items').insertOne({ n: 1 })
    await bench.admin.disableLogin('twice')
    const renewed = { ...tenant, password: 'another-password' }
    await bench.admin.claim(renewed, { connections: 3 }, {})
    await bench.admin.verify(renewed)
    expect(await (await bench.as(renewed)).db('twice').collection('items').countDocuments()).toBe(1)
  })
})

test('an unreachable server is reported as engine_unavailable, to the administrator and to a login', async () => {
  const target = { host: '127.0.0.1', port: 1, user: 'mooring', password: 'x' }
  const timeouts = { connectMs: 200, commandMs: 1_000, longCommandMs: 1_000 }
  await using admin = mongodbAdmin(target, connect(target, timeouts))
  const unavailable = code('engine_unavailable')
  await expect(admin.version()).rejects.toThrow(unavailable)
  await expect(admin.harden()).rejects.toThrow(unavailable)
  await expect(admin.verify({ name: 'a', password: 'x' })).rejects.toThrow(unavailable)
})

test('ENGINES has MongoDB by its family', () => {
  expect(ENGINES.get('mongodb')).toBe(mongodb)
})

test.each([
  {
    caFile: undefined,
    host: '127.0.0.1',
    uri: 'mongodb://app:p%40ss%2F@127.0.0.1:27017/app?authSource=app&directConnection=true&maxPoolSize=10',
  },
  {
    caFile: '/a dir/ca',
    host: '::1',
    uri: 'mongodb://app:p%40ss%2F@[::1]:27017/app?authSource=app&directConnection=true&maxPoolSize=10&tls=true&tlsCAFile=%2Fa%20dir%2Fca',
  },
])('uri returns a connection string to $host', ({ caFile, host, uri }) => {
  expect(mongodb.uri({ host, port: 27017, name: 'app', password: 'p@ss/', caFile })).toBe(uri)
})
