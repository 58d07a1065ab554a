import { mkdtempDisposable, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { expect, test } from 'vitest'
import type { Call, Instance } from '../support/api/answers.ts'
import { asInstance, createDatabase, untilRunning } from '../support/api/databases.ts'
import { startMooring } from '../support/deployment/mooring.ts'
import { smallDisk } from '../support/postgresql/disks.ts'
import { login, query } from '../support/postgresql/sql.ts'
import { LATER, patient } from '../support/patience.ts'

/** Disk size in MiB: enough for a server and its reserve, and little more. */
const DISK = 420

/** Starts Mooring with its database servers on a small disk. */
async function onSmallDisk(args: readonly string[] = []) {
  await using opened = new AsyncDisposableStack()
  const disk = opened.use(await smallDisk(DISK))
  const dir = opened.use(await mkdtempDisposable(join(tmpdir(), 'mooring-'))).path
  await symlink(disk.dir, join(dir, 'servers'))
  const mooring = opened.use(await startMooring({ dataDir: dir, args: ['--warm-pool', '0', ...args] }))
  const kept = opened.move()
  return { disk, mooring, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

/** Starts Mooring with its database servers on a small disk, and creates two tenants on one server. */
async function crowded(sizeLimitMib: number) {
  await using opened = new AsyncDisposableStack()
  const { disk, mooring } = opened.use(await onSmallDisk(['--instance-size-limit-mib', String(sizeLimitMib)]))
  const create = async (identifier: string): Promise<Instance> => {
    const body = { identifier, region: mooring.ready.region, motor: 'postgresql-15.4.0' }
    return (await mooring.call('POST', '/v1/instances', { body })).body.data.instance
  }
  const [mallory, other] = [await create('mallory'), await create('other')]
  await query(other, 'CREATE TABLE t AS SELECT 1 AS n')
  const kept = opened.move()
  return { mallory, other, mooring, disk, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

/** Runs statements of one tenant until the server rejects one. */
async function until(refused: Promise<pg.Client>, sql: (round: number) => string): Promise<unknown> {
  const client = await refused
  client.on('error', () => undefined)
  try {
    for (let round = 0; ; round++) await client.query(sql(round))
  } catch (error) {
    return error
  } finally {
    await client.end().catch(() => undefined)
  }
}

const works = async (instance: Instance): Promise<boolean> =>
  query(instance, 'SELECT n FROM t').then(
    (rows) => rows.length === 1,
    () => false,
  )

const FILL = 'INSERT INTO filler SELECT repeat(md5(n::text), 60) FROM generate_series(1, 2000) AS n'

test(
  'a tenant past its size limit that fills the disk is disabled, and the other tenant works again without help',
  { timeout: patient(240_000) },
  async () => {
    await using at = await crowded(96)
    await query(at.mallory, 'CREATE TABLE filler (text text)')
    await Promise.all(Array.from({ length: 6 }, () => until(login(at.mallory), () => FILL)))
    await expect.poll(() => works(at.other), LATER).toBe(true)
    // The sizes of databases with a session are measured at once, all others within a minute.
    // The tenant may be disabled before this session begins.
    await until(login(at.mallory), () => 'SELECT pg_sleep(0.1)').catch((error: unknown) =>
      expect(error).toMatchObject({ code: '28000' }),
    )
    const { id } = at.mallory
    await expect.poll(async () => (await at.mooring.call('GET', `/v1/instances/${id}`)).body.data.instance.isEnabled).toBe(false)
    await at.mooring.call('POST', `/v1/instances/${id}/reset`)
    await expect
      .poll(() => query(at.other, 'CREATE TABLE IF NOT EXISTS more (n int)').then(() => 'done', String), LATER)
      .toBe('done')
  },
)

test('tenants within their limits can log in while the disk is full', { timeout: patient(240_000) }, async () => {
  await using at = await crowded(10_000)
  await query(at.mallory, 'CREATE TABLE filler (text text)')
  await Promise.all(Array.from({ length: 6 }, () => until(login(at.mallory), () => FILL)))
  await expect.poll(() => works(at.other), LATER).toBe(true)
  // With free space, tenants can write again.
  await at.disk.grow(2 * DISK)
  await expect
    .poll(() => query(at.other, 'CREATE TABLE IF NOT EXISTS more (n int)').then(() => 'done', String), LATER)
    .toBe('done')
})

test(
  'temporary files of one tenant stay within its size limit and do not block another tenant',
  { timeout: patient(240_000) },
  async () => {
    await using at = await crowded(64)
    const sort = `SET work_mem = '64kB'; SELECT count(*) FROM (SELECT g, repeat('x', 100) FROM generate_series(1, 5000000) g ORDER BY -g) s`
    const refusals = await Promise.all(Array.from({ length: 6 }, () => until(login(at.mallory), () => sort)))
    expect(refusals).toHaveLength(6)
    expect(await works(at.other)).toBe(true)
  },
)

test(
  'a dedicated database that has filled its disk says so, and takes writes once the disk has grown',
  { timeout: patient(240_000) },
  async () => {
    await using at = await onSmallDisk()
    const { mooring, disk } = at
    const call: Call = (method, path, { body } = {}) =>
      mooring.call(method, new URL(path, mooring.ready.dedicatedUrl).href, { body })
    const body = { name: 'shop', engine: 'postgresql-15.4.0', region: mooring.ready.region, plan: 'small' }
    const made = await createDatabase(call, body)
    const shop = asInstance(await untilRunning(call, made))
    await query(shop, 'CREATE TABLE t AS SELECT 1 AS n; CREATE TABLE filler (text text)')
    expect(await until(login(shop), () => FILL)).toMatchObject({
      message: expect.stringContaining('No space left on device') as string,
    })

    await disk.grow(2 * DISK)
    const writes = () => query(shop, 'CREATE TABLE IF NOT EXISTS more (n int)').then(() => 'done', String)
    await expect.poll(writes, LATER).toBe('done')
    expect(await works(asInstance(await untilRunning(call, made)))).toBe(true)
  },
)
