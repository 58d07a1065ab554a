import { once } from 'node:events'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import mongoose from 'mongoose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Tenant } from '../../../support/api/tenant.ts'
import { openDeployment } from '../../../support/deployment/deployment.ts'
import { openMongodb } from '../../../support/families/family-client.ts'
import { mongosh, pythonWithPymongo, runProgram } from '../../../support/families/programs.ts'
import { usableUri } from '../../../support/families/usable-uri.ts'

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const scratch = () => mkdtempDisposable(join(tmpdir(), 'mooring-mongodb-'))

describe.each(['mongodb-5.0.9', 'mongodb-7.0.2'])('on %s', (motor) => {
  test('mongosh takes the uri as it is', async () => {
    await using directory = await scratch()
    const instance = await acme.instance({ motor })
    const shell = [...(await mongosh()), await usableUri(instance, directory.path)]
    const script = `db.ships.insertOne({ name: '🚢' });
      db.createView('names', 'ships', [{ $project: { _id: 0, name: 1 } }]);
      print(EJSON.stringify([db.getName(), db.runCommand({ connectionStatus: 1 }).authInfo.authenticatedUsers[0].user,
        db.names.find().toArray(), db.getCollectionNames().sort()]))`
    const output = await runProgram([...shell, '--eval', script])
    expect(JSON.parse(output)).toEqual([instance.name, instance.user, [{ name: '🚢' }], ['names', 'ships', 'system.views']])
    for (const command of ['show collections', 'show dbs']) await runProgram([...shell, '--eval', command])
  })

  test('mongoose validates, indexes, populates and commits a transaction', async () => {
    await using directory = await scratch()
    const instance = await acme.instance({ motor })
    const connection = await mongoose.createConnection(await usableUri(instance, directory.path)).asPromise()
    try {
      const authors = new mongoose.Schema({ name: String }).index({ name: 1 }, { unique: true })
      authors.path('name').required(true)
      const Author = connection.model('Author', authors)
      const Book = connection.model(
        'Book',
        new mongoose.Schema(
          { title: String, author: { type: mongoose.Schema.Types.ObjectId, ref: 'Author' } },
          { timestamps: true },
        ),
      )
      await Promise.all([Author.init(), Book.init()])
      await expect(new Author({}).save()).rejects.toThrow('required')
      await connection.transaction(async (session) => {
        const author = await new Author({ name: 'Ada' }).save({ session })
        await new Book({ title: 'Notes', author: author._id }).save({ session })
      })
      await expect(Author.create({ name: 'Ada' })).rejects.toMatchObject({ code: 11_000 })
      const book = await Book.findOne({ title: 'Notes' }).populate<{ author: { name: string } }>('author')
      expect(book?.author.name).toBe('Ada')
    } finally {
      await connection.close()
    }
  })

  test('mongoose watches a model', async () => {
    await using directory = await scratch()
    const instance = await acme.instance({ motor })
    const connection = await mongoose.createConnection(await usableUri(instance, directory.path)).asPromise()
    try {
      const Ship = connection.model('Ship', new mongoose.Schema({ name: String }))
      await Ship.create({ name: 'before' })
      const changes = Ship.watch()
      const next = once(changes, 'change')
      await once(changes, 'ready')
      await Ship.create({ name: 'after' })
      expect(await next).toMatchObject([{ operationType: 'insert', fullDocument: { name: 'after' } }])
      await changes.close()
    } finally {
      await connection.close()
    }
  })

  test('PyMongo commits a transaction, and its change stream reports it', async () => {
    await using directory = await scratch()
    const instance = await acme.instance({ motor })
    const script = `
import json, sys
from pymongo import MongoClient
client = MongoClient(sys.argv[1])
items = client.get_default_database().items
items.insert_one({'name': 'before'})
with client.get_default_database().watch() as changes:
    changes.try_next()
    with client.start_session() as session:
        session.with_transaction(lambda session: items.insert_one({'name': 'inside'}, session=session))
    change = changes.next()
print(json.dumps([change['operationType'], change['fullDocument']['name'], sorted(one['name'] for one in items.find())]))`
    const output = await runProgram([...(await pythonWithPymongo()), script, await usableUri(instance, directory.path)])
    expect(JSON.parse(output)).toEqual(['insert', 'inside', ['before', 'inside']])
  })

  test('a transaction that is aborted leaves nothing', async () => {
    const instance = await acme.instance({ motor })
    await using client = await openMongodb(instance)
    const items = client.db(instance.name).collection('items')
    await items.insertOne({ name: 'before' })
    await using session = client.startSession()
    session.startTransaction()
    await items.insertOne({ name: 'inside' }, { session })
    expect(await items.countDocuments({}, { session })).toBe(2)
    await session.abortTransaction()
    expect(await items.countDocuments()).toBe(1)
  })

  test('a change stream of the database reports the writes of another client', async () => {
    await using directory = await scratch()
    const instance = await acme.instance({ motor })
    await using watcher = await openMongodb(instance)
    await using writer = await new MongoClient(await usableUri(instance, directory.path)).connect()
    await using stream = watcher.db(instance.name).watch([], { fullDocument: 'updateLookup' })
    // Opens the cursor: writes from here on are reported.
    expect(await stream.tryNext()).toBeNull()
    await writer.db(instance.name).collection('items').insertOne({ name: 'new' })
    const seen = await stream.next()
    expect(seen).toMatchObject({
      operationType: 'insert',
      fullDocument: { name: 'new' },
      ns: { db: instance.name, coll: 'items' },
    })
  })

  test('the default pool of the driver works, and several clients with the pool of the uri at once', async () => {
    await using directory = await scratch()
    const instance = await acme.instance({ motor })
    const uri = await usableUri(instance, directory.path)
    const fill = async (client: MongoClient): Promise<void> => {
      const items = client.db(instance.name).collection('items')
      await Promise.all(Array.from({ length: 60 }, (_, n) => items.insertOne({ n })))
    }
    const url = new URL(uri)
    // The driver's own pool of up to 100 connections. A tenant with more than eight times its limit of connections is suspended.
    url.searchParams.delete('maxPoolSize')
    await using alone = await new MongoClient(url.href).connect()
    await fill(alone)
    await alone.close()
    await using clients = new AsyncDisposableStack()
    for (let n = 0; n < 4; n++) await fill(clients.use(await new MongoClient(uri).connect()))
    await using client = await openMongodb(instance)
    expect(await client.db(instance.name).collection('items').countDocuments()).toBe(300)
  })
})
