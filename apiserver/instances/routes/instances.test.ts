import { expect, test } from 'vitest'
import { FINALIZER } from '../../../crds/names.ts'
import { Plan } from '../../../crds/plan.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { conditionOf } from '../../../store/conditions.ts'
import { REGION_ID } from '../../../test/builders/resources.ts'
import {
  type InstanceApi,
  startInstanceApi,
  expectCreated,
  instanceOf,
  stored,
  instanceBody,
} from '../../../test/support/api/instance-api.ts'
import type { InstanceView } from '../instance-view.ts'

const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString()

/** Creates an instance as kubectl does; the operator claims it without a time limit of a request. */
async function applied(api: InstanceApi): Promise<string> {
  const metadata = { name: 'applied', namespace: 'acme--prod', finalizers: [FINALIZER] }
  const { uid } = (await api.store.create(SharedInstance, { metadata, spec: instanceBody })).metadata
  await expect.poll(async () => (await stored(api))[0]?.status?.isEnabled).toBe(true)
  await expect.poll(async () => (await api.call(`GET /v1/instances/${uid}`)).status).toBe(200)
  return uid
}

test('a creation, a rename and a deletion show at once, without credentials', async () => {
  await using api = await startInstanceApi()
  const { id } = await expectCreated(api)
  const got = instanceOf(await api.call(`GET /v1/instances/${id}`))
  expect(got).toMatchObject({ id, name: 'n', password: null, uri: null })
  await api.call(`PATCH /v1/instances/${id}`, { body: { identifier: 'pr-43' } })
  expect(instanceOf(await api.call(`GET /v1/instances/${id}`)).identifier).toBe('pr-43')
  expect(await api.call(`DELETE /v1/instances/${id}`)).toMatchObject({ status: 200, body: { msg: 'OK', data: {} } })
  for (const method of ['GET', 'DELETE']) expect((await api.call(`${method} /v1/instances/${id}`)).status).toBe(404)
})

test('an instance of another tenant is 404, and a viewer can read but not change', async () => {
  await using api = await startInstanceApi()
  const { id } = await expectCreated(api)
  const calls = [`GET /v1/instances/${id}`, `DELETE /v1/instances/${id}`, `POST /v1/instances/${id}/password`]
  for (const what of calls) expect((await api.call(what, { as: 'olaf' })).status, what).toBe(404)
  expect((await api.call(`PATCH /v1/instances/${id}`, { as: 'olaf', body: { isEnabled: false } })).status).toBe(404)
  expect((await api.call(`GET /v1/instances/${id}`, { as: 'vera' })).status).toBe(200)
  for (const what of [...calls.slice(1), `POST /v1/instances/${id}/reset`]) {
    expect((await api.call(what, { as: 'vera' })).status, what).toBe(403)
  }
  expect((await api.call('POST /v1/instances', { as: 'vera', body: instanceBody })).status).toBe(403)
})

test('a list is filtered, paged, newest first and without credentials', async () => {
  await using api = await startInstanceApi()
  for (const identifier of ['a', 'b', 'b']) await expectCreated(api, { identifier })
  await expectCreated(api, { identifier: 'b', motor: 'postgresql-14.4.0' })
  type List = { instances: InstanceView[]; nextCursor: string | null }
  const list = async (query: string) => (await api.call(`GET /v1/instances${query}`)).body.data as List
  expect((await list('')).instances).toHaveLength(4)
  expect((await list('?identifier=b&motor=postgresql-15.4.0')).instances).toHaveLength(2)
  expect((await list(`?region=${REGION_ID}&identifier=a`)).instances).toMatchObject([
    { identifier: 'a', password: null, uri: null },
  ])
  const first = await list('?limit=3')
  const rest = await list(`?limit=3&cursor=${first.nextCursor ?? ''}`)
  expect(rest.nextCursor).toBeNull()
  const ids = [...first.instances, ...rest.instances].map(({ id }) => id)
  expect(new Set(ids).size).toBe(4)
  const times = first.instances.map(({ createdAt }) => createdAt)
  expect(times).toEqual(times.toSorted().toReversed())
  expect((await api.call('GET /v1/instances?motors=x')).status).toBe(400)
})

test('a disabled instance shows as disabled when the answer is sent', async () => {
  await using api = await startInstanceApi()
  const { id } = await expectCreated(api)
  const off = await api.call(`PATCH /v1/instances/${id}`, { body: { isEnabled: false } })
  expect(off.status).toBe(200)
  expect(instanceOf(off).isEnabled).toBe(false)
  const on = await api.call(`PATCH /v1/instances/${id}`, { body: { isEnabled: true, expiresAt: null } })
  expect(instanceOf(on)).toMatchObject({ isEnabled: true, expiresAt: null })
})

test('a switch that takes too long is 202', async () => {
  await using api = await startInstanceApi({ changeMs: 50 })
  const id = await applied(api)
  api.operator.pause()
  expect((await api.call(`PATCH /v1/instances/${id}`, { body: { isEnabled: false } })).status).toBe(202)
  expect((await api.call(`POST /v1/instances/${id}/reset`)).status).toBe(202)
})

test('a null expiresAt removes it', async () => {
  await using api = await startInstanceApi()
  const { id } = await expectCreated(api, { ttl: 3600 })
  expect(instanceOf(await api.call(`PATCH /v1/instances/${id}`, { body: { expiresAt: null } })).expiresAt).toBeNull()
  expect((await stored(api))[0]?.spec).not.toHaveProperty('expiresAt')
})

test('If-Match with an older version is a conflict and changes nothing', async () => {
  await using api = await startInstanceApi()
  const { id } = await expectCreated(api)
  const etag = (await api.call(`GET /v1/instances/${id}`)).headers.get('ETag') ?? ''
  const patch = (identifier: string) =>
    api.call(`PATCH /v1/instances/${id}`, { body: { identifier }, headers: { 'If-Match': etag } })
  expect((await patch('new')).status).toBe(200)
  expect(await patch('newer')).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
  const stale = { headers: { 'If-Match': etag } }
  expect((await api.call(`DELETE /v1/instances/${id}`, stale)).status).toBe(409)
  expect(instanceOf(await api.call(`GET /v1/instances/${id}`)).identifier).toBe('new')
})

test('If-Match with an older version prevents a password rotation and a reset', async () => {
  await using api = await startInstanceApi()
  const { id } = await expectCreated(api)
  for (const what of ['password', 'reset']) {
    const call = (version: string) => api.call(`POST /v1/instances/${id}/${what}`, { headers: { 'If-Match': version } })
    const etag = (await api.call(`GET /v1/instances/${id}`)).headers.get('ETag') ?? ''
    expect(await call('"1"')).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
    expect((await call(`W/${etag}`)).status).toBe(409)
    expect((await call(`"1", ${etag}`)).status).toBe(200)
    expect((await call(etag)).status).toBe(409)
  }
  expect((await stored(api))[0]?.spec).toMatchObject({ passwordVersion: 2, resetVersion: 1 })
})

test('a reset without its template is 409 and does not change the resource', async () => {
  await using api = await startInstanceApi()
  const template = await expectCreated(api)
  const { id } = await expectCreated(api, { template: template.id })
  const reset = () => api.call(`POST /v1/instances/${id}/reset`)
  expect((await reset()).status).toBe(200)
  const before = (await stored(api)).find(({ metadata }) => metadata.uid === template.id)
  if (!before) expect.fail('there is no template')
  api.operator.pause()
  const deletion = api.call(`DELETE /v1/instances/${template.id}`)
  await api.untilInstance(before.metadata, (instance) => instance?.metadata.deletionTimestamp !== undefined)
  expect((await reset()).status).toBe(409)
  api.operator.resume()
  expect((await deletion).status).toBe(200)
  expect(await reset()).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
  expect(await stored(api)).toMatchObject([{ spec: { resetVersion: 1 } }])
})

test('a rotation answers with the new password, and two simultaneous ones count twice', async () => {
  await using api = await startInstanceApi()
  const { id } = await expectCreated(api)
  const rotate = () => api.call(`POST /v1/instances/${id}/password`)
  const answer = await rotate()
  expect(answer.status).toBe(200)
  expect(instanceOf(answer)).toMatchObject({ password: 'password-2', uri: expect.stringContaining('password-2') as string })
  await Promise.all([rotate(), rotate()])
  expect((await stored(api))[0]?.spec.passwordVersion).toBe(4)
})

test('a rotation that takes too long is 503', async () => {
  await using api = await startInstanceApi({ changeMs: 50 })
  const id = await applied(api)
  api.operator.pause()
  expect((await api.call(`POST /v1/instances/${id}/password`)).status).toBe(503)
})

test('a reset is counted and completed, and its answer has no credentials', async () => {
  await using api = await startInstanceApi()
  const { id } = await expectCreated(api)
  const answer = await api.call(`POST /v1/instances/${id}/reset`)
  expect(answer.status).toBe(200)
  expect(instanceOf(answer).password).toBeNull()
  expect((await stored(api))[0]).toMatchObject({ spec: { resetVersion: 1 }, status: { resetVersion: 1 } })
})

test('a deletion that takes too long is 202; the instance can be read but not changed; a second DELETE joins', async () => {
  await using api = await startInstanceApi({ deleteMs: 50 })
  const { id } = await expectCreated(api)
  api.operator.pause()
  const slow = await api.call(`DELETE /v1/instances/${id}`)
  expect(slow.status).toBe(202)
  expect(instanceOf(slow)).toMatchObject({ id, isEnabled: false, state: 'deleting' })
  expect(instanceOf(await api.call(`GET /v1/instances/${id}`))).toMatchObject({ id, isEnabled: false })
  expect((await api.call(`PATCH /v1/instances/${id}`, { body: { isEnabled: true } })).status).toBe(409)
  for (const what of ['password', 'reset']) expect((await api.call(`POST /v1/instances/${id}/${what}`)).status).toBe(409)
  expect((await api.call(`DELETE /v1/instances/${id}`)).status).toBe(202)
  api.operator.resume()
  await expect.poll(async () => (await api.call(`DELETE /v1/instances/${id}`)).status).toBe(404)
})

test('regions, engines and creation metadata list the available options', async () => {
  await using api = await startInstanceApi()
  const price = { amount: '9.90', currency: 'EUR', unit: 'month' }
  const spec = { name: 'Small', cpu: 0.5, memoryMiB: 512, storageGiB: 10, engines: ['postgresql-15.4.0' as const], price }
  await api.store.create(Plan, { metadata: { name: 'small' }, spec })
  const motors = ['postgresql-15.4.0', 'postgresql-14.4.0'].map((id) => ({ id, version: id.slice(11), supported: true }))
  const regions = [{ id: REGION_ID, name: 'local', regionId: 1, motors, tunnels: false }]
  for (const listener of ['shared', 'dedicated'] as const) {
    expect((await api.call('GET /v1/regions', { listener })).body.data).toEqual({ regions, nextCursor: null })
  }
  const engines = ['14.4.0', '15.4.0'].map((version) => ({
    id: `postgresql-${version}`,
    family: 'postgresql',
    version,
    supported: true,
    addons: ['firewall', 'private-network'],
  }))
  expect((await api.call('GET /v1/engines', { listener: 'dedicated' })).body.data).toEqual({ engines, nextCursor: null })
  expect((await api.call('GET /v1/engines')).status).toBe(404)
  const metadata = async () => (await api.call('GET /v1/databases/create/metadata', { listener: 'dedicated' })).body.data
  await expect.poll(metadata).toEqual({
    metadata: {
      engines,
      regions,
      plans: [{ id: 'small', ...spec }],
      billableItems: [{ id: 'small', name: 'Small', kind: 'plan', unit: 'month', price }],
      addons: [
        { id: 'firewall', name: 'Firewall', engines: engines.map(({ id }) => id) },
        { id: 'private-network', name: 'Private networking', engines: engines.map(({ id }) => id) },
      ],
    },
  })
})

test.each([
  { what: 'POST', on: '/password', body: undefined, answered: '403 quota_exceeded' },
  { what: 'POST', on: '/reset', body: undefined, answered: '403 quota_exceeded' },
  { what: 'PATCH', on: '', body: { isEnabled: false }, answered: '403 quota_exceeded' },
  { what: 'PATCH', on: '', body: { identifier: 'new', isEnabled: true }, answered: '403 quota_exceeded' },
  { what: 'PATCH', on: '', body: { identifier: 'new' }, answered: '200' },
  { what: 'PATCH', on: '', body: { expiresAt: inAnHour() }, answered: '200' },
  { what: 'GET', on: '', body: undefined, answered: '200' },
  { what: 'DELETE', on: '', body: undefined, answered: '200' },
])('$what …$on with $body for an instance past the quota is $answered', async ({ what, on, body, answered }) => {
  await using api = await startInstanceApi({ changeMs: 1_000 })
  for (const identifier of [instanceBody.identifier, 'new']) api.operator.refuse(identifier, 'QuotaExceeded')
  const metadata = { name: 'applied', namespace: 'acme--prod' }
  const { uid } = (await api.store.create(SharedInstance, { metadata, spec: instanceBody })).metadata
  await api.untilInstance(metadata, (instance) => instance?.status !== undefined)
  const [before] = await stored(api)
  const answer = await api.call(`${what} /v1/instances/${uid}${on}`, { body })
  expect([answer.status, answer.body.error?.code].join(' ').trim()).toBe(answered)
  if (answered === '200') return
  expect(answer.body.msg).toBe('refused')
  expect((await stored(api))[0]?.spec).toEqual(before?.spec)
})

test('an instance with a database can be changed even if its status names the quota', async () => {
  await using api = await startInstanceApi()
  const id = await applied(api)
  api.operator.refuse(instanceBody.identifier, 'QuotaExceeded')
  await api.call(`PATCH /v1/instances/${id}`, { body: { expiresAt: inAnHour() } })
  await api.untilInstance(
    { name: 'applied', namespace: 'acme--prod' },
    (instance) => conditionOf(instance ?? {}, 'Ready')?.reason === 'QuotaExceeded',
  )
  expect((await api.call(`PATCH /v1/instances/${id}`, { body: { isEnabled: true } })).status).toBe(200)
})
