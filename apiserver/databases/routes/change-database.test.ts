import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { annotations } from '../../../crds/names.ts'
import { createRestoreGrants } from '../../../shared/restore-grants.ts'
import { databaseOf, type DatabaseApi, startDatabaseApi } from '../../../test/support/api/database-api.ts'
import { codeOf, fieldsOf } from '../../../test/support/api/http-app.ts'

/** Creates a database that runs, and returns its path. */
async function running(api: DatabaseApi, body: object = {}): Promise<{ readonly id: string; readonly path: string }> {
  const { id } = await api.created(body)
  await api.runs(id)
  return { id, path: `/v1/databases/${id}` }
}

test('a PATCH is a merge patch: lists are replaced whole, and null removes an add-on', async () => {
  await using api = await startDatabaseApi()
  const { id, path } = await running(api, { firewallRules: [{ cidr: '10.0.0.0/8' }] })
  const patch = async (body: object) => databaseOf(await api.call(`PATCH ${path}`, { body }))
  expect(await patch({ firewallRules: [{ cidr: '::1' }], privateNetwork: true })).toMatchObject({
    ...{ firewallRules: [{ cidr: '::1' }], privateNetwork: true, plan: 'small' },
    ...{ status: 'updating', statusCode: 'Updating', connection: null },
  })
  await api.runs(id)
  expect(await patch({ privateNetwork: null })).toMatchObject({ firewallRules: [{ cidr: '::1' }], privateNetwork: false })
  expect(await patch({ firewallRules: [] })).toMatchObject({ firewallRules: [] })
  expect(await patch({ firewallRules: null, pointInTimeRecovery: null, sshTunnel: null, monitoring: null })).toMatchObject({
    firewallRules: null,
  })
  expect(api.recorded.map(({ action }) => action)).toEqual(['create', 'update', 'update', 'update', 'update'])
})

test('a PATCH without a change writes nothing', async () => {
  await using api = await startDatabaseApi()
  const { path } = await running(api)
  const before = await api.stored()
  for (const body of [{}, { plan: 'small' }, { firewallRules: null }, { privateNetwork: false }]) {
    const answer = await api.call(`PATCH ${path}`, { body })
    expect([codeOf(answer), databaseOf(answer).status]).toEqual(['200 OK', 'running'])
  }
  expect(await api.stored()).toEqual(before)
  expect(api.recorded).toHaveLength(1)
})

describe('a rejected PATCH changes nothing', () => {
  let api: DatabaseApi
  let path: string
  beforeAll(async () => {
    api = await startDatabaseApi()
    path = (await running(api, { plan: 'large' })).path
  })
  afterAll(() => api[Symbol.asyncDispose]())

  test.each([
    { does: 'an unknown plan', body: { plan: 'huge' }, code: '422 unknown_plan', fields: ['plan'] },
    { does: 'a plan of another engine', body: { plan: 'older' }, code: '422 unknown_plan', fields: ['plan'] },
    { does: 'a plan with less storage', body: { plan: 'small' }, code: '422 plan_too_small', fields: ['plan'] },
    { does: 'no plan', body: { plan: null }, code: '400 invalid_request', fields: ['plan'] },
    {
      does: 'fields that cannot change',
      body: { name: 'x', engine: 'y' },
      code: '400 invalid_request',
      fields: ['name', 'engine'],
    },
    { does: 'a restore', body: { restoreFrom: null }, code: '400 invalid_request', fields: ['restoreFrom'] },
    {
      does: 'an invalid rule',
      body: { firewallRules: [{ cidr: '::1' }, { cidr: '1.2.3' }] },
      code: '400 invalid_request',
      fields: ['firewallRules[1].cidr'],
    },
  ])('to $does is $code', async ({ body, code, fields }) => {
    const before = await api.stored()
    const answer = await api.call(`PATCH ${path}`, { body })
    expect([codeOf(answer), fieldsOf(answer)]).toEqual([code, fields])
    expect(await api.stored()).toEqual(before)
  })
})

test('If-Match with an older version is a conflict and changes nothing', async () => {
  await using api = await startDatabaseApi()
  const { path } = await running(api)
  const headers = { 'If-Match': '"1"' }
  for (const call of [`PATCH ${path}`, `POST ${path}/password`, `DELETE ${path}`]) {
    const body = call.startsWith('PATCH') ? { privateNetwork: true } : undefined
    expect(codeOf(await api.call(call, { body, headers })), call).toBe('409 conflict')
  }
  const etag = (await api.call(`GET ${path}`)).headers.get('ETag') ?? ''
  expect(codeOf(await api.call(`PATCH ${path}`, { body: { plan: 'large' }, headers: { 'If-Match': etag } }))).toBe('200 OK')
})

test('a rotation returns the new connection once the password is in force', async () => {
  await using api = await startDatabaseApi()
  const { id, path } = await running(api)
  const answering = api.call(`POST ${path}/password`)
  await expect.poll(async () => (await api.stored())[0]?.spec.passwordVersion).toBe(2)
  await api.runs(id)
  const answer = await answering
  expect(codeOf(answer)).toBe('200 OK')
  expect(databaseOf(answer)).toMatchObject({ status: 'running', connection: { password: 'password-2' } })
  expect(api.recorded.map(({ action }) => action)).toEqual(['create', 'update'])
})

test('a rotation that takes too long is 503', async () => {
  await using api = await startDatabaseApi({ rotationMs: 50 })
  const { path } = await running(api)
  const answer = await api.call(`POST ${path}/password`)
  expect(codeOf(answer)).toBe('503 unavailable')
  expect(answer.headers.get('Retry-After')).toBe('5')
})

test('a rotation before the database is created is 409, and 403 while the quota is exceeded', async () => {
  await using api = await startDatabaseApi()
  const { id } = await api.created()
  const rotate = async () => codeOf(await api.call(`POST /v1/databases/${id}/password`))
  expect(await rotate()).toBe('409 conflict')
  await api.reports(id, { phase: 'failed' }, 'QuotaExceeded')
  expect(await rotate()).toBe('403 quota_exceeded')
  expect((await api.stored())[0]?.spec.passwordVersion).toBe(1)
})

test('a DELETE is 202 until the database is gone, then 404', async () => {
  await using api = await startDatabaseApi()
  const { id, path } = await running(api)
  for (let time = 1; time <= 2; time++) {
    const answer = await api.call(`DELETE ${path}`)
    expect([codeOf(answer), databaseOf(answer)]).toEqual(['202 OK', expect.objectContaining({ id, status: 'deleting' })])
  }
  expect(databaseOf(await api.call(`GET ${path}`))).toMatchObject({ status: 'deleting', connection: null })
  for (const call of [`PATCH ${path}`, `POST ${path}/password`]) {
    expect(codeOf(await api.call(call, call.startsWith('PATCH') ? { body: { plan: 'large' } } : {})), call).toBe('409 conflict')
  }
  await api.ends(id)
  for (const method of ['GET', 'DELETE']) expect(codeOf(await api.call(`${method} ${path}`))).toBe('404 not_found')
  expect(api.recorded.map(({ action }) => action)).toEqual(['create', 'delete'])
})

test('a DELETE of a database without a finalizer is 202, although the database is gone at once', async () => {
  await using api = await startDatabaseApi()
  const { id, path } = await running(api)
  const [database] = await api.stored()
  if (database) await api.store.mergePatch(DedicatedDatabase, database.metadata, { metadata: { finalizers: [] } })
  const answer = await api.call(`DELETE ${path}`)
  expect(databaseOf(answer)).toMatchObject({ id, status: 'deleting' })
  expect(codeOf(await api.call(`GET ${path}`))).toBe('404 not_found')
})

test.each([
  { does: 'plain removes a mark that an interrupted request has left', marked: true, calls: [''], kept: false },
  { does: 'with keepBackups marks the database', marked: false, calls: ['?keepBackups=true'], kept: true },
  { does: 'repeated without keepBackups keeps the mark', marked: false, calls: ['?keepBackups=true', ''], kept: true },
])('a DELETE $does', async ({ marked, calls, kept }) => {
  await using api = await startDatabaseApi({ restoreGrants: createRestoreGrants(new Uint8Array(32)) })
  const { path } = await running(api, { pointInTimeRecovery: { retentionDays: 7 } })
  const stored = async () => (await api.stored())[0]?.metadata ?? expect.fail('the database is gone')
  const mark = { [annotations.keepBackups]: 'true' }
  if (marked) await api.store.mergePatch(DedicatedDatabase, await stored(), { metadata: { annotations: mark } })
  for (const query of calls) expect(codeOf(await api.call(`DELETE ${path}${query}`))).toBe('202 OK')
  const { deletionTimestamp, annotations: marks } = await stored()
  expect([deletionTimestamp !== undefined, marks?.[annotations.keepBackups] === 'true']).toEqual([true, kept])
})

test('a DELETE with keepBackups=true is 422, because there are no backups', async () => {
  await using api = await startDatabaseApi()
  const { path } = await running(api)
  const kept = await api.call(`DELETE ${path}?keepBackups=true`)
  expect([codeOf(kept), fieldsOf(kept)]).toEqual(['422 unsupported_addon', ['keepBackups']])
  expect(codeOf(await api.call(`DELETE ${path}?keepBackups=maybe`))).toBe('400 invalid_request')
  expect(codeOf(await api.call(`DELETE ${path}?keepBackups=false`))).toBe('202 OK')
})
