import type { MongoClient } from 'mongodb'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { SessionBounds } from '../../../operator/engines/engine.ts'
import { connect } from '../../../operator/engines/mongodb/connection.ts'
import { createWatchdog } from '../../../operator/engines/mongodb/watchdog.ts'
import { mongodbBench } from '../../support/mongodb/engine.ts'
import { flood } from '../../support/mongodb/flood.ts'
import { SERIES } from '../../support/mongodb/mongod.ts'
import { startStubborn } from '../../support/mongodb/stubborn.ts'
import { LATER } from '../../support/patience.ts'

const BOUNDS: SessionBounds = { statementMs: 60_000, idleTransactionMs: 60_000, sizeBytes: 1 << 30 }
const code = (expected: string | number): Error => expect.objectContaining({ code: expected }) as Error
const INTERRUPTED = 11_601
const NO_SUCH_TRANSACTION = 251
const UNAUTHORIZED = 13

describe.each(SERIES)('The watchdog of MongoDB for %s', (series) => {
  const bench = mongodbBench(series, { capacity: 10 })

  /** Starts a statement of a tenant that would take hours. Resolves to its result or error. */
  async function slowly(client: MongoClient, name: string): Promise<unknown> {
    const numbers = client.db(name).collection('numbers')
    await numbers.insertMany(Array.from({ length: 2_000 }, (_, n) => ({ n })))
    const all = { from: 'numbers', pipeline: [], as: 'all' }
    const stages = [{ $lookup: all }, { $unwind: '$all' }, { $project: { _id: 1 } }]
    return numbers
      .aggregate([...stages, ...stages, ...stages, { $count: 'n' }])
      .toArray()
      .catch((error: unknown) => error)
  }

  /** Statements on a collection `one` that a tenant sees of itself. */
  async function runningOperations(client: MongoClient): Promise<readonly { readonly opid: number }[]> {
    const stages = [{ $currentOp: {} }, { $match: { 'command.aggregate': 'one' } }]
    return client.db('admin').aggregate<{ readonly opid: number }>(stages).toArray()
  }

  async function operations(name: string, match: object = {}): Promise<number> {
    const admin = (await bench.server.client()).db('admin')
    const found = await admin
      .aggregate([{ $currentOp: { allUsers: true, idleSessions: true } }, { $match: { 'effectiveUsers.db': name, ...match } }])
      .toArray()
    return found.length
  }

  test('cancels a statement past its bound, and keeps the session', async () => {
    const client = await bench.as(await bench.tenant('endless'))
    const result = slowly(client, 'endless')
    await expect.poll(() => operations('endless', { 'command.aggregate': 'numbers' })).toBe(1)
    expect(await bench.admin.enforce(BOUNDS)).toEqual({ cancelled: 0, ended: 0 })
    await vi.waitFor(async () => expect((await bench.admin.enforce({ ...BOUNDS, statementMs: 1 })).cancelled).toBe(1), LATER)
    expect(await result).toEqual(code(INTERRUPTED))
    await client.db('endless').command({ ping: 1 })
  })

  test('aborts a transaction that is idle past its bound', async () => {
    const client = await bench.as(await bench.tenant('idle'))
    const items = client.db('idle').collection('items')
    await items.insertOne({ n: 0 })
    const session = client.startSession()
    session.startTransaction()
    await items.insertOne({ n: 1 }, { session })
    expect(await bench.admin.enforce(BOUNDS)).toEqual({ cancelled: 0, ended: 0 })
    await vi.waitFor(async () => expect((await bench.admin.enforce({ ...BOUNDS, idleTransactionMs: 1 })).ended).toBe(1), LATER)
    await expect(items.insertOne({ n: 2 }, { session })).rejects.toThrow(code(NO_SUCH_TRANSACTION))
    await session.endSession()
    expect(await items.countDocuments()).toBe(1)
  })

  test('ends a change stream that waits past its bound', async () => {
    const client = await bench.as(await bench.tenant('waiting'))
    await client.db('waiting').collection('items').insertOne({})
    const changes = client.db('waiting').collection('items').watch([], { maxAwaitTimeMS: 600_000 })
    const next = changes.next().catch(() => 'ended')
    await expect.poll(() => operations('waiting', { op: 'getmore' })).toBe(1)
    await vi.waitFor(async () => expect((await bench.admin.enforce({ ...BOUNDS, statementMs: 1 })).cancelled).toBe(1), LATER)
    await expect.poll(() => operations('waiting', { op: 'getmore', killPending: true })).toBe(0)
    await client.close()
    await next
  })

  test('keeps a tenant within its connections, and suspends one with many more', async () => {
    // Twelve, with the eightfold tolerance of 96, and the server has 300.
    const [modest, greedy] = [await bench.tenant('modest'), await bench.tenant('greedy')]
    const kept = await bench.as(modest)
    for (let n = 0; n < 20; n++) await bench.as(modest)
    const clients = await Promise.all(Array.from({ length: 40 }, () => bench.as(greedy)))
    expect(await bench.admin.enforce(BOUNDS)).toEqual({ cancelled: 0, ended: 0 })
    await bench.admin.claim(greedy, { connections: 3 }, {})
    // A claim logs sessions out, so they are opened anew.
    await Promise.all(clients.map((client) => client.close()))
    const again = await Promise.all(Array.from({ length: 30 }, () => bench.as(greedy)))
    expect((await bench.admin.enforce(BOUNDS)).ended).toBeGreaterThanOrEqual(30)
    await expect(again[0]?.db('greedy').collection('items').findOne()).rejects.toThrow(code(UNAUTHORIZED))
    await expect(bench.admin.verify(greedy)).rejects.toThrow(code('login_refused'))
    await kept.db('modest').collection('items').insertOne({})
    // The sweep finds the suspended login, and setting the password again opens it.
    expect(await bench.admin.findChangedPasswords([greedy, modest])).toEqual(['greedy'])
    await bench.admin.setPassword(greedy)
    await bench.admin.verify(greedy)
    await Promise.all(again.map((client) => client.close()))
  })

  test('restarts a server whose connections are all taken, and reaches it meanwhile', async () => {
    const victim = await bench.tenant('victim')
    await (await bench.as(victim)).db('victim').collection('kept').insertOne({ n: 1 })
    const release = flood(bench.server.target.port)
    onTestFinished(release)
    await expect
      .poll(async () =>
        bench.as(victim).then(
          () => 'open',
          () => 'full',
        ),
      )
      .toBe('full')
    // The limit does not count the operator's connections, new ones included.
    await using watching = connect(bench.server.target)
    await watching.watch.command('admin', { ping: 1 })
    await bench.admin.verify(await bench.tenant('late'))
    // A server that has just started is not restarted, since a flood would keep it from serving.
    expect(await bench.admin.enforce(BOUNDS)).toEqual({ cancelled: 0, ended: 0 })
    const enforce = createWatchdog({ connection: watching, admin: 'mooring', waiting: new Set(), restartIntervalMs: 0 })
    expect((await enforce(BOUNDS)).ended).toBeGreaterThan(200)
    release()
    await bench.server.restart()
    await bench.admin.verify(victim)
    expect(await (await bench.as(victim)).db('victim').collection('kept').countDocuments()).toBe(1)
  })

  test('requires a restart for a statement that no kill interrupts, and suspends its tenant', async () => {
    const stubborn = await bench.tenant('stubborn')
    const client = await bench.as(stubborn)
    const { ended } = await startStubborn(client, 'stubborn', 'read')
    await expect.poll(() => operations('stubborn', { 'command.aggregate': 'one' })).toBe(1)
    // Its tenant kills the statement, but it may go on within its bound.
    const other = await bench.as(stubborn)
    const [running] = await runningOperations(other)
    await other.db('admin').command({ killOp: 1, op: running?.opid })
    for (let check = 0; check < 5; check++) expect(await bench.admin.enforce(BOUNDS)).toEqual({ cancelled: 0, ended: 0 })
    const enforce = () => bench.admin.enforce({ ...BOUNDS, statementMs: 1 })
    for (let check = 0; check < 2; check++) expect(await enforce()).toEqual({ cancelled: 1, ended: 0 })
    expect(await enforce()).toEqual({
      cancelled: 1,
      ended: 0,
      suspended: [{ name: 'stubborn', cause: 'statement' }],
      needsRestart: true,
    })
    await bench.server.crash()
    expect(await ended).toBeInstanceOf(Error)
    expect(await bench.admin.findChangedPasswords([stubborn])).toEqual(['stubborn'])
  })
})
