import { BSON, type Document, MongoClient } from 'mongodb'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { hasCollections, readSizes } from '../../../operator/engines/mongodb/catalog.ts'
import { addressOf, type Connection, dialling, type Session, TIMEOUTS } from '../../../operator/engines/mongodb/connection.ts'
import { measure } from '../../../operator/engines/mongodb/measure.ts'
import { listOperations } from '../../../operator/engines/mongodb/sessions.ts'
import { mongodbBench } from '../../support/mongodb/engine.ts'
import { SERIES } from '../../support/mongodb/mongod.ts'
import { LATER } from '../../support/patience.ts'

const MIB = 2 ** 20
/** Expression that takes the server about a second for each document. */
const SUM = {
  $reduce: { input: { $range: [0, { $add: ['$n', 400_000] }] }, initialValue: 0, in: { $add: ['$$value', '$$this'] } },
}

describe.each(SERIES)('The administrator of MongoDB for %s', (series) => {
  const bench = mongodbBench(series)

  /** Session of the administrator, and the sizes of the answers that it received, in bytes. */
  function watched() {
    const { target } = bench.server
    const { user: username, password } = target
    const client = new MongoClient(addressOf(target), {
      ...dialling(target, TIMEOUTS),
      auth: { username, password },
      monitorCommands: true,
    })
    onTestFinished(() => client.close())
    const answers: number[] = []
    client.on('commandSucceeded', ({ reply }) => answers.push(BSON.calculateObjectSize(reply as Document)))
    const watch: Session = { db: (name) => client.db(name), command: (name, command) => client.db(name).command(command) }
    return { connection: { watch } as Connection, watch, answers }
  }

  test('receives none of the text of a running command', async () => {
    const client = await bench.as(await bench.tenant('loud'))
    const items = client.db('loud').collection('items')
    await items.insertMany(Array.from({ length: 20 }, (_, n) => ({ n })))
    const comment = 'x'.repeat(14 * MIB)
    const running = items.aggregate([{ $project: { sum: SUM } }], { comment }).toArray()
    running.catch(() => undefined)
    const { connection, watch, answers } = watched()
    const scope = { idleConnections: true, idleSessions: true }
    const operation = await vi.waitFor(async () => {
      const [found] = await listOperations(watch, scope, {
        ...{ 'effectiveUsers.db': 'loud', active: true },
        // Between two parts of a command an operation has neither a client nor a time.
        microsecs_running: { $exists: true },
      })
      return found ?? expect.fail('the operation is not running')
    }, LATER)
    expect(operation).toMatchObject({ type: 'op', active: true, effectiveUsers: [{ user: 'loud', db: 'loud' }] })
    expect(Object.keys(operation)).toEqual(expect.arrayContaining(['opid', 'client', 'connectionId', 'microsecs_running']))
    expect(Object.keys(operation.lsid ?? {})).toEqual(['id', 'uid'])
    expect(operation).not.toHaveProperty('command')
    expect(await measure(connection, 'loud')).toMatchObject({ connections: 1 })
    expect(answers).not.toEqual([])
    expect(Math.max(...answers)).toBeLessThan(MIB)
  })

  test('receives neither the pipelines of views nor the validators of collections', async () => {
    const client = await bench.as(await bench.tenant('viewer'))
    const db = client.db('viewer')
    const many = Array.from({ length: 900_000 }, () => ({}))
    const images = series === '5.0' ? {} : { changeStreamPreAndPostImages: { enabled: true } }
    await db.createCollection('items', { ...images, validator: { a: { $nin: many } } })
    await db.collection('items').insertOne({ n: 1 })
    await db.collection('items').updateOne({ n: 1 }, { $set: { n: 2 } })
    for (const name of ['v', 'w'])
      await db.command({ create: name, viewOn: 'items', pipeline: [{ $match: { a: { $in: many } } }] })
    const { connection, watch, answers } = watched()
    expect((await readSizes(connection, 'all')).get('viewer')).toBeGreaterThan(10_000)
    expect(await measure(connection, 'viewer')).toBeDefined()
    expect(await hasCollections(watch, 'viewer')).toBe(true)
    expect(await hasCollections(watch, 'nothing')).toBe(false)
    expect(answers).not.toEqual([])
    expect(Math.max(...answers)).toBeLessThan(MIB)
  })
})
