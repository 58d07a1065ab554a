import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { mongodbBench } from '../../../support/mongodb/engine.ts'
import { SERIES } from '../../../support/mongodb/mongod.ts'
import { SOON } from '../../../support/patience.ts'

/** What tenants share on a server, each bounded or counted. */
describe.each(SERIES)('MongoDB for %s: a tenant', (series) => {
  const bench = mongodbBench(series)

  test('cannot pass the fixed size of the oplog', async () => {
    const { maxSize } = await bench.server.command('local', { collStats: 'oplog.rs' })
    expect(maxSize).toBe(256 * 1_048_576)
  })

  test('is offered no compression of messages', async () => {
    const client = await bench.as(await bench.tenant('compressor'))
    const reply = await client.db('admin').command({ hello: 1, compression: ['snappy', 'zlib', 'zstd'] })
    expect(reply).not.toHaveProperty('compression')
  })

  test('stores no images of findAndModify beside its database', async () => {
    const client = await bench.as(await bench.tenant('images'))
    const items = client.db('images').collection('items')
    await items.insertOne({ n: 0, text: 'x'.repeat(1_000_000) })
    for (let n = 0; n < 3; n++) {
      await client.withSession((session) => items.findOneAndUpdate({}, { $inc: { n: 1 } }, { session }))
    }
    const stats = await bench.server.command('config', { collStats: 'image_collection' })
    expect(stats.count).toBe(0)
  })

  // 5.0 has no collection of images: they are in the oplog.
  if (series !== '5.0') {
    test('has the images of its changed documents counted towards its size, and they expire', async () => {
      const client = await bench.as(await bench.tenant('changes'))
      const db = client.db('changes')
      await db.createCollection('items', { changeStreamPreAndPostImages: { enabled: true } })
      await db.collection('items').insertOne({ n: 0, text: randomBytes(600_000).toString('base64') })
      const before = (await bench.admin.sizes('all')).get('changes') ?? 0
      for (let n = 0; n < 10; n++) await db.collection('items').updateOne({}, { $inc: { n: 1 } })
      expect((await bench.admin.sizes('busy')).get('changes')).toBeGreaterThan(before + 7_000_000)
      const { clusterParameters } = await bench.server.command('admin', { getClusterParameter: 'changeStreamOptions' })
      expect(clusterParameters).toMatchObject([{ preAndPostImages: { expireAfterSeconds: expect.anything() as unknown } }])
      expect(JSON.stringify(clusterParameters)).not.toContain('off')
    })
  }

  test('cannot keep a transaction open for longer than a minute, nor a session for longer than five', async () => {
    const parameters = { transactionLifetimeLimitSeconds: 1, localLogicalSessionTimeoutMinutes: 1 }
    expect(await bench.server.command('admin', { getParameter: 1, ...parameters })).toMatchObject({
      transactionLifetimeLimitSeconds: 60,
      localLogicalSessionTimeoutMinutes: 5,
    })
  })

  test('cannot fill the cache of sessions for longer than ten seconds', async () => {
    const tenant = await bench.tenant('sessions')
    const client = await bench.as(tenant)
    const cached = async () => {
      const { logicalSessionRecordCache: cache } = (await bench.server.command('admin', { serverStatus: 1 })) as {
        logicalSessionRecordCache: { activeSessionsCount: number }
      }
      return cache.activeSessionsCount
    }
    for (let n = 0; n < 500; n++) await client.db('sessions').command({ startSession: 1 })
    expect(await cached()).toBeGreaterThan(100)
    await expect.poll(cached, SOON).toBeLessThan(100)
  })

  test('logs no slow statement', async () => {
    const client = await bench.as(await bench.tenant('slow'))
    await client
      .db('slow')
      .collection('items')
      .insertMany(Array.from({ length: 5_000 }, (_, n) => ({ n })))
    await client.db('slow').collection('items').find({ text: 'document-of-slow' }).toArray()
    const log = await bench.server.log()
    expect(log).not.toContain('Slow query')
    expect(log).not.toContain('document-of-slow')
  })
})
