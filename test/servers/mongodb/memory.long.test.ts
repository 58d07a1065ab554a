import { describe, expect, test } from 'vitest'
import type { SessionBounds } from '../../../operator/engines/engine.ts'
import { mongodbBench } from '../../support/mongodb/engine.ts'
import { limitMemory, useUpMemory } from '../../support/mongodb/memory.ts'
import { SERIES } from '../../support/mongodb/mongod.ts'
import { LATER } from '../../support/patience.ts'

const BOUNDS: SessionBounds = { statementMs: 600_000, idleTransactionMs: 600_000, sizeBytes: 1 << 30 }
const code = (expected: string): Error => expect.objectContaining({ code: expected }) as Error
const CALM = { cancelled: 0, ended: 0 }

describe.each(SERIES)('a tenant that ends MongoDB for %s by memory', (series) => {
  const bench = mongodbBench(series, { capacity: 10 })

  test('is suspended for ten minutes, whatever its password, and its neighbours are not', async () => {
    const [greedy, neighbour] = [await bench.tenant('greedy'), await bench.tenant('neighbour')]
    const client = await bench.as(greedy)
    await client
      .db('greedy')
      .collection('one')
      .insertOne({ values: [1, 2, 3, 4, 5, 6, 7, 8] })
    await (await bench.as(neighbour)).db('neighbour').collection('kept').insertOne({ n: 1 })
    await limitMemory(bench.server.pid())
    expect(await bench.admin.enforce(BOUNDS)).toEqual(CALM)
    await expect(useUpMemory(client, 'greedy')).rejects.toThrow()
    expect(await bench.server.stopped()).not.toBe(0)

    await bench.server.restart()
    await bench.admin.harden()
    expect(await bench.admin.enforce(BOUNDS)).toEqual({ ...CALM, suspended: [{ name: 'greedy', cause: 'memory' }] })
    expect(await bench.admin.enforce(BOUNDS)).toEqual(CALM)
    await expect(bench.admin.verify(greedy)).rejects.toThrow(code('login_refused'))
    await bench.admin.verify(neighbour)
    expect(await (await bench.as(neighbour)).db('neighbour').collection('kept').countDocuments()).toBe(1)
    // No sweep restores the password, and a new one does not open the login.
    expect(await bench.admin.findChangedPasswords([greedy, neighbour])).toEqual([])
    await bench.admin.setPassword({ ...greedy, password: 'second' })
    await expect(bench.admin.verify({ ...greedy, password: 'second' })).rejects.toThrow(code('login_refused'))

    const users = (await bench.server.client()).db('admin').collection('system.users')
    await users.updateOne({ db: 'greedy' }, { $set: { 'customData.barredUntil': new Date() } })
    await expect.poll(() => bench.admin.findChangedPasswords([greedy]), LATER).toEqual(['greedy'])
    await bench.admin.setPassword(greedy)
    await bench.admin.verify(greedy)
  })

  test('is not suspended for an operation after which the memory was low again', async () => {
    const tenant = await bench.tenant('modest')
    const client = await bench.as(tenant)
    await client
      .db('modest')
      .collection('one')
      .insertOne({ values: [1, 2, 3, 4, 5, 6, 7, 8] })
    await bench.admin.enforce(BOUNDS)
    await client.db('modest').collection('one').find().toArray()
    await bench.server.crash()
    await bench.admin.harden()
    expect(await bench.admin.enforce(BOUNDS)).toEqual(CALM)
    await bench.admin.verify(tenant)
  })
})
