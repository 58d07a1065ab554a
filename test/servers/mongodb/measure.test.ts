import { describe, expect, test } from 'vitest'
import { mongodbBench } from '../../support/mongodb/engine.ts'
import { SERIES } from '../../support/mongodb/mongod.ts'
import { slowStatements, totalOf } from '../../support/slow-statements.ts'

describe.each(SERIES)('MongoDB %s', (series) => {
  const bench = mongodbBench(series)

  test('measures the tenant’s connections, operations, page reads and slow operations', async () => {
    const { admin } = bench
    const tenant = await bench.tenant('measured')
    const client = await bench.as(tenant)
    const items = client.db('measured').collection('items')
    const own = slowStatements()
    const measure = async () => (await own.run(() => admin.measure('measured'))) ?? expect.fail('not measured')
    const before = await measure()
    for (let index = 0; index < 50; index += 1) await own.run(() => items.insertOne({ index, text: 'x'.repeat(100_000) }))
    for (let index = 0; index < 50; index += 1) await own.run(() => items.findOne({ index }))
    const after = await measure()
    expect(after.connections).toBe(1)
    expect(after.transactions - before.transactions).toBeGreaterThanOrEqual(100)
    expect(after.transactions - before.transactions).toBeLessThan(150)
    expect(after.pages.reads).toBeGreaterThan(before.pages.reads)
    expect(after.pages.misses).toBeLessThanOrEqual(after.pages.reads)
    await expect.poll(async () => (await measure()).sizeBytes - before.sizeBytes).toBeGreaterThan(60_000)
    expect(totalOf(after.slow) - totalOf(before.slow)).toBeLessThanOrEqual(own.atMost())
    const begun = { ...(await measure()), atMost: own.atMost() }
    const sum = { $reduce: { input: { $range: [0, 400_000] }, initialValue: 0, in: { $add: ['$$value', '$$this'] } } }
    const begin = performance.now()
    await items.aggregate([{ $project: { sum } }]).toArray()
    expect(performance.now() - begin).toBeGreaterThan(1_100)
    const idle = await measure()
    expect(totalOf(idle.slow) - totalOf(begun.slow)).toBeGreaterThanOrEqual(1)
    expect(totalOf(idle.slow) - totalOf(begun.slow)).toBeLessThanOrEqual(1 + own.atMost() - begun.atMost)
    expect((await measure()).transactions - idle.transactions).toBeLessThanOrEqual(10)
  })
})
