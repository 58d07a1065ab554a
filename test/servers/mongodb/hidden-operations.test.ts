import { BSON, type Document, Long, type MongoClient } from 'mongodb'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { SessionBounds, Tenant } from '../../../operator/engines/engine.ts'
import { LIMITS, mongodbBench } from '../../support/mongodb/engine.ts'
import { SERIES } from '../../support/mongodb/mongod.ts'
import { logInByWire, openWire } from '../../support/mongodb/wire.ts'
import { LATER } from '../../support/patience.ts'

const BOUNDS: SessionBounds = { statementMs: 60_000, idleTransactionMs: 60_000, sizeBytes: 1 << 30 }
/** A cursor is described with the comments of two commands, which together are larger than a document may be. */
const COMMENT = 'x'.repeat(14 * 2 ** 20)
/** Maximum size of a command in bytes. Its description is larger. */
const MAX_COMMAND = 16 * 2 ** 20 + 16 * 2 ** 10
const TOO_LARGE = 10_334
const INTERRUPTED = 11_601
const WAIT_MS = 600_000
const LONG = { timeout: 240_000 }

const code = (expected: string | number): Error => expect.objectContaining({ code: expected }) as Error

/** A client of a server tries to prevent the list of operations, which the operator needs to bound, rotate and drop any tenant. */
describe.each(SERIES)('MongoDB for %s', (series) => {
  const bench = mongodbBench(series)

  /** Resolves when the server lists no operations. */
  async function expectNoList(): Promise<void> {
    const admin = (await bench.server.client()).db('admin')
    const list = () =>
      admin
        .aggregate([{ $currentOp: { allUsers: true, truncateOps: true } }])
        .toArray()
        .catch((error: unknown) => error)
    await expect.poll(list, LATER).toEqual(code(TOO_LARGE))
  }

  /** Opens a change stream of a driver with a large comment, which waits. Resolves to its end. */
  async function hide(tenant: Tenant): Promise<{ readonly end: Promise<string> }> {
    const client = await bench.as(tenant)
    const changes = client.db(tenant.name).watch([], { maxAwaitTimeMS: WAIT_MS, comment: COMMENT })
    const end = changes.next().then(
      () => 'change',
      () => 'ended',
    )
    await expectNoList()
    return { end }
  }

  /** Opens a change stream with a large comment and no session, which waits. */
  async function hideWithoutSession(tenant: Tenant): Promise<void> {
    const wire = await logInByWire(bench.server.target.port, tenant)
    onTestFinished(() => wire.close())
    const stages = [{ $changeStream: {} }, { $match: { never: true } }]
    const $db = tenant.name
    const { cursor } = await wire.command({ aggregate: 1, pipeline: stages, cursor: {}, comment: COMMENT, $db })
    const { id } = cursor as { id: Long }
    wire.command({ getMore: id, collection: '$cmd.aggregate', maxTimeMS: Long.fromNumber(WAIT_MS), $db }).catch(() => undefined)
    await expectNoList()
  }

  /** Waits for a change of the server's topology with the largest comment, without a login. */
  async function hideWithoutLogin(): Promise<void> {
    const { topologyVersion } = (await bench.server.command('admin', { hello: 1 })) as { topologyVersion: Document }
    const command = (comment: string) => ({
      hello: 1,
      topologyVersion: { ...topologyVersion, counter: Long.fromNumber(Number(topologyVersion.counter)) },
      maxAwaitTimeMS: Long.fromNumber(WAIT_MS),
      ...{ comment, $db: 'admin' },
    })
    const wire = openWire(bench.server.target.port)
    onTestFinished(() => wire.close())
    const room = MAX_COMMAND - BSON.calculateObjectSize(command('')) - 8
    wire.command(command('x'.repeat(room))).catch(() => undefined)
    await expectNoList()
  }

  /** Starts a statement of a tenant that would take hours, and waits until it runs. Resolves to its error. */
  async function slowly(client: MongoClient, name: string): Promise<{ readonly result: Promise<unknown> }> {
    const numbers = client.db(name).collection('numbers')
    await numbers.insertMany(Array.from({ length: 2_000 }, (_, n) => ({ n })))
    const stages = [{ $lookup: { from: 'numbers', pipeline: [], as: 'all' } }, { $unwind: '$all' }, { $project: { _id: 1 } }]
    const result = numbers
      .aggregate([...stages, ...stages, ...stages, { $count: 'n' }])
      .toArray()
      .catch((error: unknown) => error)
    const match = { 'command.aggregate': 'numbers', microsecs_running: { $gt: 10_000 } }
    const watching = await bench.as({ name, password: `password-of-${name}` })
    const own = () =>
      watching
        .db('admin')
        .aggregate([{ $currentOp: {} }, { $match: match }])
        .toArray()
    await expect.poll(own, LATER).toHaveLength(1)
    await watching.close()
    return { result }
  }

  /** Checks that the operator bounds, measures, copies, rotates, disables, resets and drops other tenants. */
  async function expectControl(prefix: string): Promise<void> {
    const other = await bench.tenant(`${prefix}other`)
    const client = await bench.as(other)
    const { result } = await slowly(client, other.name)
    expect((await bench.admin.enforce({ ...BOUNDS, statementMs: 1 })).suspended).toBeUndefined()
    expect(await result).toEqual(code(INTERRUPTED))
    expect((await bench.admin.sizes('busy')).get(other.name)).toBeGreaterThan(0)
    await expect(bench.admin.claim({ ...other, name: `${prefix}copy` }, LIMITS, { template: other.name })).rejects.toThrow(
      code('template_in_use'),
    )
    await client.close()
    const rotated = { ...other, password: 'the-next-one' }
    await bench.admin.setPassword(rotated)
    await bench.admin.verify(rotated)
    await bench.admin.disableLogin(other.name)
    await bench.admin.reset(other.name, {})
    await bench.admin.drop(other.name)
    expect(await bench.admin.find(other.name)).toEqual({ database: false, login: 'absent' })
  }

  test('keeps its watchdog when a change stream has a large comment, and ends that', LONG, async () => {
    const { end } = await hide(await bench.tenant('commenter'))
    expect((await bench.admin.enforce(BOUNDS)).cancelled).toBe(1)
    expect(await end).toBe('ended')
    expect(await bench.admin.enforce(BOUNDS)).toEqual({ cancelled: 0, ended: 0 })
  })

  test('rotates, disables and drops the tenant of such a change stream, and its neighbours before', LONG, async () => {
    const tenant = await bench.tenant('hider')
    const first = await hide(tenant)
    const neighbour = await bench.tenant('neighbour')
    await bench.admin.setPassword({ ...neighbour, password: 'the-next-one' })
    await bench.admin.drop(neighbour.name)
    await bench.admin.setPassword(tenant)
    expect(await first.end).toBe('ended')
    const second = await hide(tenant)
    await bench.admin.disableLogin(tenant.name)
    expect(await second.end).toBe('ended')
    await bench.admin.enableLogin(tenant.name)
    const third = await hide(tenant)
    await bench.admin.drop(tenant.name)
    expect(await third.end).toBe('ended')
  })

  test('ends such a change stream when its source is not admitted any more', LONG, async () => {
    const tenant = await bench.tenant('excluded')
    const { end } = await hide(tenant)
    await bench.admin.admit(['127.0.0.2/32'])
    expect(await end).toBe('ended')
    await bench.admin.admit(undefined)
    await bench.admin.verify(tenant)
  })

  test('controls other tenants while a client without a login waits with a large comment', LONG, async () => {
    await hideWithoutLogin()
    await expectControl('nameless')
  })

  test('controls other tenants while an operation without a session is hidden, and restarts past its bound', LONG, async () => {
    const tenant = await bench.tenant('stealthy')
    await using client = await bench.as(tenant)
    await client.db(tenant.name).collection('items').insertOne({})
    await hideWithoutSession(tenant)
    await expectControl('stealthy')
    expect((await bench.admin.sizes('busy')).get(tenant.name)).toBeGreaterThan(0)
    await expect(bench.admin.setPassword(tenant)).rejects.toThrow(code('engine_failed'))
    const late = await bench.admin.enforce({ ...BOUNDS, statementMs: 1 })
    expect(late).toEqual({ cancelled: 1, ended: 0, suspended: [{ name: tenant.name, cause: 'statement' }], needsRestart: true })
    await bench.server.crash()
    await expect(bench.admin.verify(tenant)).rejects.toThrow(code('login_refused'))
    expect(await bench.admin.findChangedPasswords([tenant])).toEqual([tenant.name])
    await bench.admin.setPassword(tenant)
    await bench.admin.verify(tenant)
    expect(await bench.admin.enforce(BOUNDS)).toEqual({ cancelled: 0, ended: 0 })
  })
})
