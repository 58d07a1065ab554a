import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { BSON, type CollectionInfo, type Db, Decimal128, Double, Int32, Long } from 'mongodb'
import { describe, expect, test } from 'vitest'
import type { Tenant } from '../../../operator/engines/engine.ts'
import type { Claim } from '../../support/mongodb/claim-worker.ts'
import { LIMITS, mongodbBench } from '../../support/mongodb/engine.ts'
import { SERIES } from '../../support/mongodb/mongod.ts'
import { LATER } from '../../support/patience.ts'

/** Content of a view or document of some 5 MB, which takes five times as much as objects of the driver. */
const MANY = Array.from({ length: 400_000 }, () => ({}))
/** Number of such views or documents. Their objects take some 340 MiB, and the operator has fewer. */
const COUNT = 12
const HEAP_MIB = 256
const LONG = { timeout: 240_000 }

/** Makes one of everything that a tenant can make. */
async function furnish(db: Db): Promise<void> {
  const items = db.collection('items')
  await items.insertMany([
    { _id: new Int32(1) as never, name: 'one', at: { type: 'Point', coordinates: [1, 2] }, price: Decimal128.fromString('1.50') },
    { _id: new Double(2) as never, name: 'two', large: Long.fromString('9007199254740993'), '$odd.name': 1 },
  ])
  await items.createIndexes([
    { key: { name: 1 }, name: 'by_name', unique: true, partialFilterExpression: { name: { $exists: true } } },
    { key: { at: '2dsphere' } },
    { key: { name: 'text' }, default_language: 'german', weights: { name: 5 } },
    { key: { gone: 1 }, expireAfterSeconds: 3600 },
    { key: { '$**': 1 }, wildcardProjection: { secret: 0 } },
  ])
  // The validator is younger than a document that it rejects.
  await db.command({ collMod: 'items', validator: { name: { $ne: 'one' } }, validationLevel: 'moderate' })
  await db.createCollection('folded', { collation: { locale: 'de', strength: 1 } })
  await db.collection('folded').createIndexes([{ key: { name: 1 }, collation: { locale: 'simple' } }])
  await db.collection('folded').createIndex({ other: 1 })
  await db.createCollection('recent', { capped: true, size: 65_536, max: 3 })
  for (const n of [5, 4, 3, 2]) await db.collection('recent').insertOne({ n })
  await db.createCollection('weather', { timeseries: { timeField: 'at', metaField: 'station', granularity: 'minutes' } })
  await db.collection('weather').insertMany([
    { at: new Date(1_000), station: 'a', celsius: 1.5 },
    { at: new Date(2_000), station: 'b', celsius: 2 },
  ])
  await db.collection('weather').createIndex({ 'station.name': 1 })
  await db.createCollection('second', { viewOn: 'first', pipeline: [{ $sort: { name: -1 } }] })
  await db.createCollection('first', { viewOn: 'items', pipeline: [{ $project: { name: 1 } }] })
  await db
    .collection<{ _id: string }>('system.js')
    .insertOne({ _id: 'answer', value: new BSON.Code('function () { return 42 }') } as never)
}

/** Returns everything of a database but identifiers, in an order of its own. */
async function contentsOf(db: Db): Promise<unknown> {
  // `system.…` belongs to views and time-series collections, except for the stored functions.
  const infos = ((await db.listCollections().toArray()) as CollectionInfo[]).filter(
    ({ name }) => name === 'system.js' || !name.startsWith('system.'),
  )
  const contents = await Promise.all(
    infos
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map(async ({ name, type, options }) => {
        const collection = db.collection(name)
        const indexes = type === 'view' ? [] : await collection.listIndexes().toArray()
        return { name, type, options, indexes, documents: await collection.find({}, { promoteValues: false }).toArray() }
      }),
  )
  return JSON.parse(BSON.EJSON.stringify(contents, { relaxed: false }))
}

describe.each(SERIES)('MongoDB for %s copies a template', (series) => {
  const bench = mongodbBench(series)
  const code = (expected: string): Error => expect.objectContaining({ code: expected }) as Error
  const copy = { name: 'copy', password: 'password-of-copy' }
  const model = (name: string) => ({ name, password: `password-of-${name}` })

  async function furnished(name: string): Promise<unknown> {
    const contents = await furnishAndRead(await bench.tenant(name))
    // The server lists a session for a moment after its client has closed it.
    const admin = (await bench.server.client()).db('admin')
    const sessions = () =>
      admin.aggregate([{ $currentOp: { allUsers: true, idleConnections: true } }, { $match: { 'effectiveUsers.user': name } }])
    await expect.poll(async () => (await sessions().toArray()).length, LATER).toBe(0)
    return contents
  }

  async function furnishAndRead(tenant: Tenant): Promise<unknown> {
    await using client = await bench.as(tenant)
    await furnish(client.db(tenant.name))
    return await contentsOf(client.db(tenant.name))
  }

  test('with collections, documents, options, indexes and views', async () => {
    const original = await furnished('model')
    await bench.admin.claim(copy, LIMITS, { template: 'model' })
    await bench.admin.verify(copy)
    const client = await bench.as(copy)
    expect(await contentsOf(client.db('copy'))).toEqual(original)
    expect(await client.db('copy').collection('second').find().toArray()).toMatchObject([{ name: 'two' }, { name: 'one' }])
    await expect(client.db('copy').collection('items').insertOne({ name: 'two' })).rejects.toThrow(/duplicate key/)
    await expect(client.db('copy').collection('items').insertOne({ name: 'one' })).rejects.toThrow(/validation/)
    await client.db('copy').dropDatabase()
  })

  test('on reset, and keeps the credentials', async () => {
    const original = await furnished('golden')
    const tenant = await bench.tenant('fresh')
    const client = await bench.as(tenant)
    await client.db('fresh').collection('own').insertOne({ n: 1 })
    await bench.admin.reset('fresh', { template: 'golden' })
    // The session goes on: it only had no privileges meanwhile.
    expect(await contentsOf(client.db('fresh'))).toEqual(original)
    await bench.admin.verify(tenant)
  })

  test('in several concurrent calls', async () => {
    const original = await furnished('popular')
    const copies = Array.from({ length: 4 }, (_, i) => model(`popular${i}`))
    await Promise.all(copies.map((tenant) => bench.admin.claim(tenant, LIMITS, { template: 'popular' })))
    for (const tenant of copies) {
      await using client = await bench.as(tenant)
      expect(await contentsOf(client.db(tenant.name))).toEqual(original)
    }
  })

  test('anew when a claim was interrupted during the copy', async () => {
    const original = await furnished('whole')
    const root = await bench.server.client()
    const interrupted = model('interrupted')
    await bench.admin.claim(interrupted, LIMITS, { template: 'whole' })
    // State after a crash: some collections, and a role without privileges.
    await root.db('interrupted').collection('items').drop()
    await root.db('interrupted').collection('half').insertOne({})
    await root
      .db('admin')
      .collection('system.roles')
      .updateOne({ db: 'interrupted' }, { $set: { privileges: [], roles: [] } })
    await bench.admin.claim(interrupted, LIMITS, { template: 'whole' })
    await using client = await bench.as(interrupted)
    expect(await contentsOf(client.db('interrupted'))).toEqual(original)
  })

  test('once only: a repeated claim keeps the data', async () => {
    await furnished('single')
    const tenant = model('keeps')
    await bench.admin.claim(tenant, LIMITS, { template: 'single' })
    await using client = await bench.as(tenant)
    await client.db('keeps').collection('own').insertOne({ n: 1 })
    await bench.admin.claim(tenant, LIMITS, { template: 'single' })
    await using again = await bench.as(tenant)
    expect(await again.db('keeps').collection('own').countDocuments()).toBe(1)
  })

  test('only while no session is open on it, and does not end sessions', async () => {
    const client = await bench.as(await bench.tenant('occupied'))
    await expect(bench.admin.claim({ ...copy, name: 'second' }, LIMITS, { template: 'occupied' })).rejects.toThrow(
      code('template_in_use'),
    )
    await client.db('occupied').command({ ping: 1 })
    expect(await bench.admin.find('second')).toEqual({ database: false, login: 'absent' })
  })

  test('and fails when the template is written to meanwhile', async () => {
    await furnished('moving')
    const items = (await bench.server.client()).db('moving').collection('folded')
    const claim = { settled: false }
    const claimed = bench.admin
      .claim({ ...copy, name: 'moved' }, LIMITS, { template: 'moving' })
      .finally(() => (claim.settled = true))
    const refused = expect(claimed).rejects.toThrow(code('template_in_use'))
    while (!claim.settled) await items.insertOne({})
    await refused
    expect(await bench.admin.find('moved')).toMatchObject({ database: true })
    await bench.admin.claim({ ...copy, name: 'moved' }, LIMITS, { template: 'moving' })
    await bench.admin.verify({ ...copy, name: 'moved' })
  })

  /** Claims a copy of a template by an operator with little memory. Resolves to the operator's exit code. */
  async function claimWithin(heapMib: number, tenant: Tenant, template: string): Promise<unknown> {
    const workerData: Claim = { target: bench.server.target, tenant, template }
    const file = new URL('../../support/mongodb/claim-worker.ts', import.meta.url)
    const worker = new Worker(file, { workerData, resourceLimits: { maxOldGenerationSizeMb: heapMib } })
    const [exitCode] = (await once(worker, 'exit')) as unknown[]
    return exitCode
  }

  test('with views that together do not fit into the memory of the operator', LONG, async () => {
    const views = Array.from({ length: COUNT }, (_, n) => `v${n}`)
    {
      await using client = await bench.as(await bench.tenant('broad'))
      for (const view of views)
        await client.db('broad').createCollection(view, { viewOn: 'items', pipeline: [{ $match: { a: { $in: MANY } } }] })
    }
    expect(await claimWithin(HEAP_MIB, model('narrow'), 'broad')).toBe(0)
    await using copied = await bench.as(model('narrow'))
    const found = await copied.db('narrow').listCollections({ type: 'view' }, { nameOnly: true }).toArray()
    expect(found.map(({ name }) => name).toSorted()).toEqual(views.toSorted())
  })

  test('with documents that do not fit, where the server cannot copy them itself', LONG, async () => {
    {
      await using client = await bench.as(await bench.tenant('deep'))
      const items = await client.db('deep').createCollection('items', { capped: true, size: 2 ** 28 })
      for (let n = 0; n < COUNT; n++) await items.insertOne({ n, many: MANY })
    }
    expect(await claimWithin(HEAP_MIB, model('shallow'), 'deep')).toBe(0)
    await using copied = await bench.as(model('shallow'))
    expect(await copied.db('shallow').collection('items').countDocuments()).toBe(COUNT)
  })

  test.each(['absent', 'admin', 'local', 'Odd'])('only of a tenant, not of %s', async (template) => {
    await expect(bench.admin.claim({ ...copy, name: 'third' }, LIMITS, { template })).rejects.toThrow(code('template_missing'))
    expect((await bench.admin.catalog()).leftovers).toEqual([])
  })
})
