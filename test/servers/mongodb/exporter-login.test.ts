import { describe, expect, test } from 'vitest'
import { EXPORTER_USER } from '../../../operator/engines/exporter.ts'
import { expectReplacedAndDropped } from '../../support/exporter-login.ts'
import { mongodbBench } from '../../support/mongodb/engine.ts'
import { SERIES } from '../../support/mongodb/mongod.ts'

describe.each(SERIES)('the login of an exporter of MongoDB for %s', (series) => {
  const bench = mongodbBench(series)
  const logIn = (password: string) => bench.server.client({ user: EXPORTER_USER, password, database: 'admin' })

  test('reads statistics and no data, and accepts only its last password until it is dropped', async () => {
    const { admin } = bench
    const tenant = await bench.tenant('secretive')
    await (await bench.as(tenant)).db('secretive').collection('items').insertOne({ n: 1 })
    await admin.monitor('first')
    await admin.monitor('first')
    const client = await logIn('first')
    // The exporter of docs/dedicated.md ("Exporters") sends these commands.
    for (const command of [
      'serverStatus',
      'buildInfo',
      'hello',
      'listDatabases',
      'replSetGetStatus',
      'getDiagnosticData',
      'getCmdLineOpts',
    ]) {
      expect(await client.db('admin').command({ [command]: 1 }), command).toMatchObject({ ok: 1 })
    }
    expect(await client.db('secretive').command({ dbStats: 1 })).toMatchObject({ ok: 1, collections: 1 })
    await expect(client.db('secretive').collection('items').findOne()).rejects.toMatchObject({ code: 13 })
    await expect(client.db('admin').collection('system.users').findOne()).rejects.toMatchObject({ code: 13 })
    // These have the documents that tenants write.
    for (const [database, collection] of [
      ['local', 'oplog.rs'],
      ['config', 'image_collection'],
      ['secretive', 'system.profile'],
    ] as const)
      await expect(client.db(database).collection(collection).findOne(), collection).rejects.toMatchObject({ code: 13 })

    await expectReplacedAndDropped({ admin, logIn })
  })
})
