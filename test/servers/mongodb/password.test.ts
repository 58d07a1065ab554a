import { describe, expect, test } from 'vitest'
import type { UserDocument } from '../../../operator/engines/mongodb/users.ts'
import { mongodbBench } from '../../support/mongodb/engine.ts'
import { SERIES } from '../../support/mongodb/mongod.ts'

const code = (expected: string | number): Error => expect.objectContaining({ code: expected }) as Error
const UNAUTHORIZED = 13

describe.each(SERIES)('MongoDB for %s', (series) => {
  const bench = mongodbBench(series)

  test('setPassword makes the new password work and the old one fail', async () => {
    const tenant = await bench.tenant('rotated')
    const rotated = { ...tenant, password: 'the-next-one' }
    await bench.admin.setPassword(rotated)
    await bench.admin.verify(rotated)
    await expect(bench.admin.verify(tenant)).rejects.toThrow(code('login_refused'))
  })

  test('setPassword ends sessions that were opened with the old password, idle, in a transaction or in a cursor', async () => {
    const tenant = await bench.tenant('ended')
    const client = await bench.as(tenant)
    const items = client.db('ended').collection('items')
    await items.insertMany(Array.from({ length: 10 }, (_, n) => ({ n })))
    const cursor = items.find({}, { batchSize: 2 })
    await cursor.next()
    const session = client.startSession()
    session.startTransaction()
    await items.insertOne({ n: 11 }, { session })
    await bench.admin.setPassword({ ...tenant, password: 'the-next-one' })
    await expect(items.findOne()).rejects.toThrow(code(UNAUTHORIZED))
    await expect(cursor.toArray()).rejects.toThrow()
    await expect(session.commitTransaction()).rejects.toThrow()
    expect(await (await bench.server.client()).db('ended').collection('items').countDocuments()).toBe(10)
    await session.endSession()
  })

  test('setPassword ends an operation that runs', async () => {
    const tenant = await bench.tenant('running')
    const client = await bench.as(tenant)
    await client.db('running').collection('items').insertOne({})
    const changes = client.db('running').watch([], { maxAwaitTimeMS: 600_000 })
    const next = changes.next().then(
      () => 'change',
      () => 'ended',
    )
    const root = await bench.server.client()
    await expect
      .poll(() =>
        root
          .db('admin')
          .aggregate([{ $currentOp: { allUsers: true } }, { $match: { 'effectiveUsers.db': 'running', op: 'getmore' } }])
          .toArray(),
      )
      .toHaveLength(1)
    await bench.admin.setPassword({ ...tenant, password: 'the-next-one' })
    expect(await next).toBe('ended')
  })

  test('setPassword keeps a disabled login disabled, and fails without a login', async () => {
    const tenant = await bench.tenant('off')
    await bench.admin.disableLogin('off')
    const rotated = { ...tenant, password: 'the-next-one' }
    await bench.admin.setPassword(rotated)
    expect(await bench.admin.find('off')).toEqual({ database: true, login: 'disabled' })
    await expect(bench.admin.verify(rotated)).rejects.toThrow(code('login_refused'))
    await bench.admin.enableLogin('off')
    await bench.admin.verify(rotated)
    await expect(bench.admin.setPassword({ name: 'nosuchlogin', password: 'x' })).rejects.toThrow(code('engine_failed'))
  })

  test('findChangedPasswords returns the tenants whose password was changed on the server', async () => {
    const [same, other] = [await bench.tenant('same'), await bench.tenant('other')]
    const gone = { name: 'neverwas', password: 'x' }
    expect(await bench.admin.findChangedPasswords([same, other, gone])).toEqual([])
    await bench.server.command('other', { updateUser: 'other', pwd: 'changed' })
    for (let round = 0; round < 2; round++) expect(await bench.admin.findChangedPasswords([same, other, gone])).toEqual(['other'])
    await bench.admin.setPassword(other)
    expect(await bench.admin.findChangedPasswords([same, other, gone])).toEqual([])
    expect(await bench.admin.findChangedPasswords([{ ...same, password: 'another' }])).toEqual(['same'])
  })

  test('the log has no password, no key and no document', async () => {
    const tenant = await bench.tenant('leaky')
    const client = await bench.as(tenant)
    await client.db('leaky').collection('items').insertOne({ text: 'document-of-leaky' })
    await client.db('leaky').collection('items').findOne({ text: 'document-of-leaky' })
    await expect(client.db('leaky').command({ createUser: 'x', pwd: 'hunter2hunter2', roles: [] })).rejects.toThrow()
    await expect(client.db('leaky').command({ find: 'items', filter: { $odd: 'document-of-leaky' } })).rejects.toThrow()
    await bench.admin.setPassword({ name: 'leaky', password: 'hunter2hunter2' })
    await expect(bench.admin.verify({ name: 'leaky', password: 'hunter2wrong' })).rejects.toThrow()
    const user = await (await bench.server.client()).db('admin').collection<UserDocument>('system.users').findOne({ db: 'leaky' })
    const stored = user?.credentials['SCRAM-SHA-256']?.storedKey ?? 'storedKey'
    const secrets = ['hunter2', 'password-of-leaky', 'document-of-leaky', bench.server.target.password, stored]
    const log = await bench.server.log()
    expect(log).toContain('principalName')
    expect(secrets.filter((secret) => log.includes(secret))).toEqual([])
  })
})
