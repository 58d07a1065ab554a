import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Mooring, startMooring } from '../support/mooring.ts'

let mooring: Mooring
beforeAll(async () => {
  mooring = await startMooring()
})
afterAll(async () => {
  await mooring[Symbol.asyncDispose]()
})

const wish = (more: object = {}) => ({ identifier: 'PR #7', region: mooring.ready.region, motor: 'postgresql-15.4.0', ...more })
const create = async (more: object = {}, headers: Record<string, string> = {}) =>
  mooring.call('POST', '/v1/instances', { body: wish(more), headers })

async function query(uri: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: uri })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows
  } finally {
    await client.end()
  }
}

test('one POST gives a database that works', async () => {
  const { status, body } = await create()
  expect(status).toBe(201)
  const { instance } = body.data
  expect(instance).toMatchObject({
    identifier: 'PR #7',
    isEnabled: true,
    region: 'local',
    motor: 'postgresql-15.4.0',
    engineVersion: '15.4',
  })
  expect(await query(instance.uri, 'SELECT current_database() AS name')).toEqual([{ name: instance.name }])
})

test('the same Idempotency-Key gives the same database, with its password', async () => {
  const key = { 'Idempotency-Key': 'build-7' }
  const [first, again] = [await create({}, key), await create({}, key)]
  expect([first.status, again.status]).toEqual([201, 201])
  expect(again.body.data.instance).toEqual(first.body.data.instance)
  expect((await create({ identifier: 'other' }, key)).body.error.code).toBe('idempotency_key_reused')
})

test('a rotated password replaces the old one', async () => {
  const { instance: before } = (await create()).body.data
  const { status, body } = await mooring.call('POST', `/v1/instances/${before.id}/password`)
  expect(status).toBe(200)
  expect(body.data.instance.password).not.toBe(before.password)
  await expect(query(before.uri, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })
  expect(await query(body.data.instance.uri, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
})

test('a reset empties the database and keeps its credentials', async () => {
  const { instance } = (await create()).body.data
  await query(instance.uri, 'CREATE TABLE t (i int)')
  expect((await mooring.call('POST', `/v1/instances/${instance.id}/reset`)).status).toBe(200)
  expect(await query(instance.uri, "SELECT count(*)::int AS n FROM pg_tables WHERE tablename = 't'")).toEqual([{ n: 0 }])
})

test('a disabled instance lets nobody in until it is enabled again', async () => {
  const { instance } = (await create()).body.data
  const path = `/v1/instances/${instance.id}`
  expect((await mooring.call('PATCH', path, { body: { isEnabled: false } })).body.data.instance.isEnabled).toBe(false)
  await expect(query(instance.uri, 'SELECT 1')).rejects.toMatchObject({ code: '28000' })
  expect((await mooring.call('PATCH', path, { body: { isEnabled: true } })).body.data.instance.isEnabled).toBe(true)
  expect(await query(instance.uri, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
})

test('a copy of a template starts with its content and is its own', async () => {
  const { instance: source } = (await create({ identifier: 'seed' })).body.data
  await query(source.uri, 'CREATE TABLE t AS SELECT 1 AS i')
  const { status, body } = await create({ identifier: 'copy', template: source.id })
  expect(status).toBe(201)
  expect(await query(body.data.instance.uri, 'SELECT i FROM t')).toEqual([{ i: 1 }])
  await query(body.data.instance.uri, 'DROP TABLE t')
  expect(await query(source.uri, 'SELECT i FROM t')).toEqual([{ i: 1 }])
})

test('a deleted instance is gone, and so is its login', async () => {
  const { instance } = (await create()).body.data
  const path = `/v1/instances/${instance.id}`
  expect(await mooring.call('DELETE', path)).toMatchObject({ status: 200, body: { msg: 'OK', data: {} } })
  expect((await mooring.call('GET', path)).status).toBe(404)
  expect((await mooring.call('DELETE', path)).status).toBe(404)
  await expect(query(instance.uri, 'SELECT 1')).rejects.toThrow()
})

test('after kill -9 and a new start everything is there and works', async () => {
  const first = await startMooring()
  const { instance } = (await first.call('POST', '/v1/instances', { body: { ...wish(), region: first.ready.region } })).body.data
  first.process.kill('SIGKILL')
  await using second = await startMooring({ dataDir: first.dataDir })
  expect((await second.call('GET', `/v1/instances/${instance.id}`)).body.data.instance).toMatchObject({
    name: instance.name,
    isEnabled: true,
  })
  expect(await query(instance.uri, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
})
