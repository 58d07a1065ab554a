import { afterEach, expect, test, vi } from 'vitest'
import type { Draft, Kind } from '../../../crds/kind.ts'
import { annotations, FINALIZER } from '../../../crds/names.ts'
import { Region } from '../../../crds/region.ts'
import type { Store } from '../../../store/port.ts'
import { region, REGION_ID } from '../../../test/builders/resources.ts'
import {
  type InstanceApi,
  startInstanceApi,
  expectCreated,
  instanceOf,
  keyed,
  stored,
  instanceBody,
} from '../../../test/support/api/instance-api.ts'
import { INSTANCE_LIMITS } from '../instance-deps.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const regionName = region().metadata.name

test('a POST answers with a database that works', async () => {
  await using api = await startInstanceApi()
  const answer = await api.call('POST /v1/instances', { body: { ...instanceBody, ttl: 3600 } })
  expect(answer.status).toBe(201)
  expect(answer.headers.get('ETag')).toMatch(/^".+"$/)
  expect(instanceOf(answer)).toMatchObject({
    name: 'n',
    user: 'u',
    password: 'password-1',
    isEnabled: true,
    identifier: 'pr-42',
    host: '127.0.0.1',
    port: 15432,
    region: 'local',
    motor: 'postgresql-15.4.0',
    engineVersion: '15.4',
    uri: 'postgresql://u:password-1@127.0.0.1:15432/n',
    tls: { required: false, ca: null },
    expiresAt: expect.stringMatching(/\.\d{3}Z$/) as string,
    createdAt: expect.stringMatching(/\.\d{3}Z$/) as string,
  })
  const [object] = await stored(api)
  expect(object?.metadata.finalizers).toEqual([FINALIZER])
  expect(object?.metadata.annotations).toMatchObject({ [annotations.createdBy]: 'erin' })
  expect(object?.metadata.annotations).toHaveProperty([annotations.claimDeadline])
})

test.each([
  { does: 'a missing motor', body: { identifier: 'a', region: REGION_ID }, status: 400, code: 'invalid_request' },
  { does: 'an unknown region', body: { ...instanceBody, region: '42' }, status: 422, code: 'unknown_region' },
  { does: 'a motor outside the seven', body: { ...instanceBody, motor: 'oracle-23' }, status: 422, code: 'unsupported_motor' },
  { does: 'a motor not run here', body: { ...instanceBody, motor: 'mysql-8.0.29' }, status: 422, code: 'unsupported_motor' },
  {
    does: 'a time too near',
    body: { ...instanceBody, expiresAt: new Date().toISOString() },
    status: 400,
    code: 'invalid_request',
  },
  { does: 'an unknown template', body: { ...instanceBody, template: REGION_ID }, status: 400, code: 'invalid_request' },
])('a POST with $does is $status $code and leaves nothing', async ({ body, status, code }) => {
  await using api = await startInstanceApi()
  expect(await api.call('POST /v1/instances', { body })).toMatchObject({ status, body: { error: { code } } })
  expect(await stored(api)).toEqual([])
})

test('a template must be of the same namespace, region and motor', async () => {
  await using api = await startInstanceApi()
  const { id: template } = await expectCreated(api)
  const copy = await expectCreated(api, { template })
  const copied = (await stored(api)).find(({ metadata }) => metadata.uid === copy.id)
  const original = (await stored(api)).find(({ metadata }) => metadata.uid === template)
  expect(copied?.spec.templateRef).toEqual({ name: original?.metadata.name })
  const otherMotor = await api.call('POST /v1/instances', { body: { ...instanceBody, motor: 'postgresql-14.4.0', template } })
  expect(otherMotor).toMatchObject({
    status: 422,
    body: {
      msg: 'the template is a database of postgresql-15.4.0: a copy must have the same motor, not postgresql-14.4.0',
      error: { code: 'unsupported_motor', details: [{ field: 'template' }] },
    },
  })
  const otherNamespace = await api.call('POST /v1/instances', { as: 'olaf', body: { ...instanceBody, template } })
  expect(otherNamespace).toMatchObject({ status: 400, body: { error: { details: [{ field: 'template' }] } } })
})

test.each([
  { reason: 'UnknownRegion', status: 422, code: 'unknown_region' },
  { reason: 'UnsupportedMotor', status: 422, code: 'unsupported_motor' },
  { reason: 'TemplateNotFound', status: 400, code: 'invalid_request' },
  { reason: 'QuotaExceeded', status: 403, code: 'quota_exceeded' },
])('a claim that the operator rejects with $reason is $status, and the instance is deleted', async ({ reason, status, code }) => {
  await using api = await startInstanceApi()
  api.operator.refuse('pr-42', reason)
  const answer = await api.call('POST /v1/instances', { body: instanceBody, ...keyed('k') })
  expect(answer).toMatchObject({ status, body: { msg: 'refused', error: { code } } })
  await expect.poll(() => stored(api)).toEqual([])
})

test('a POST that runs out of time is 503 and leaves nothing', async () => {
  await using api = await startInstanceApi({ changeMs: 50 })
  api.operator.pause()
  const answer = await api.call('POST /v1/instances', { body: instanceBody })
  expect(answer).toMatchObject({ status: 503, body: { error: { code: 'unavailable' } } })
  expect(answer.headers.get('Retry-After')).toMatch(/^\d+$/)
  api.operator.resume()
  await expect.poll(() => stored(api)).toEqual([])
})

test('a POST whose template is in use is 409 before it runs out of time, and leaves nothing', async () => {
  await using api = await startInstanceApi({ changeMs: 600_000, templateMs: 50 })
  api.operator.refuse('pr-42', 'TemplateInUse')
  const answer = await api.call('POST /v1/instances', { body: instanceBody, ...keyed('k') })
  const details = [{ field: 'template', message: 'has open sessions' }]
  expect(answer).toMatchObject({ status: 409, body: { error: { code: 'conflict', details } } })
  await expect.poll(() => stored(api)).toEqual([])
})

test.each([
  {
    when: 'its region has dropped the motor',
    change: (api: InstanceApi) => api.store.mergePatch(Region, { name: regionName }, { spec: { motors: [] } }),
  },
  { when: 'its region is gone', change: (api: InstanceApi) => api.store.delete(Region, { name: regionName }) },
])('a repeated POST gets the first answer although $when', async ({ change }) => {
  await using api = await startInstanceApi()
  const post = (key: string) => api.call('POST /v1/instances', { body: instanceBody, ...keyed(key) })
  const first = await post('k')
  expect(first.status).toBe(201)
  await change(api)
  await expect.poll(async () => (await post('other')).status).toBe(422)
  const again = await post('k')
  const { region: name, ...rest } = instanceOf(first)
  expect(again).toMatchObject({ status: 201, body: { data: { instance: rest } } })
  expect([name, instanceBody.region]).toContain(instanceOf(again).region)
  const other = await api.call('POST /v1/instances', { body: { ...instanceBody, identifier: 'x' }, ...keyed('k') })
  expect(other).toMatchObject({ status: 422, body: { error: { code: 'idempotency_key_reused' } } })
})

test('a repeated POST gets the first answer although its template is deleted and its expiry is near', async () => {
  await using api = await startInstanceApi()
  const { id: template } = await expectCreated(api)
  const body = { ...instanceBody, template }
  const first = await api.call('POST /v1/instances', { body, ...keyed('k') })
  expect((await api.call(`DELETE /v1/instances/${template}`)).status).toBe(200)
  const again = await api.call('POST /v1/instances', { body, ...keyed('k') })
  expect(again).toMatchObject({ status: 201, body: { data: first.body.data } })
})

test('the time budget of a POST starts at its arrival and includes the creation in the store', async () => {
  const now = performance.now.bind(performance)
  const between = (store: Store): Store => ({
    ...store,
    async create<K extends Kind>(kind: K, draft: Draft<K>) {
      const made = await store.create(kind, draft)
      vi.spyOn(performance, 'now').mockImplementation(() => now() + INSTANCE_LIMITS.changeMs)
      return made
    },
  })
  await using api = await startInstanceApi({ between })
  api.operator.pause()
  // A budget that started only now would outlast this test.
  expect((await api.call('POST /v1/instances', { body: instanceBody })).status).toBe(503)
  api.operator.resume()
  await expect.poll(() => stored(api)).toEqual([])
})

test('a POST with an Idempotency-Key continues past its time budget, and the retry joins it', async () => {
  await using api = await startInstanceApi({ changeMs: 500 })
  api.operator.pause()
  const first = await api.call('POST /v1/instances', { body: instanceBody, ...keyed('k') })
  expect(first.status).toBe(503)
  api.operator.resume()
  await expect.poll(async () => (await stored(api))[0]?.status?.isEnabled).toBe(true)
  const again = await api.call('POST /v1/instances', { body: instanceBody, ...keyed('k') })
  expect(again.status).toBe(201)
  const [object, ...others] = await stored(api)
  expect(others).toEqual([])
  expect(object?.metadata.annotations).not.toHaveProperty([annotations.claimDeadline])
  expect(instanceOf(again)).toMatchObject({ id: object?.metadata.uid, password: 'password-1' })
})

test('an Idempotency-Key gives the same answer, rejects another body, and is free once the instance is gone', async () => {
  await using api = await startInstanceApi()
  const post = (body: object) => api.call('POST /v1/instances', { body, ...keyed('k') })
  const both = await Promise.all([post(instanceBody), post(instanceBody)])
  expect(both.map(({ status }) => status)).toEqual([201, 201])
  const [first, second] = both.map(instanceOf)
  expect(second).toEqual(first)
  expect(await post({ ...instanceBody, identifier: 'other' })).toMatchObject({
    status: 422,
    body: { error: { code: 'idempotency_key_reused' } },
  })
  await api.call(`DELETE /v1/instances/${first?.id ?? ''}`)
  const fresh = await post(instanceBody)
  expect(fresh.status).toBe(201)
  expect(instanceOf(fresh).id).not.toBe(first?.id)
})

test('the quota holds for simultaneous requests, and a repeated request is not counted again', async () => {
  await using api = await startInstanceApi({ perNamespace: 3 })
  const post = (n: number) => api.call('POST /v1/instances', { body: instanceBody, ...keyed(`k${n}`) })
  const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(post))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 201, 403, 403, 403])
  expect(answers.find(({ status }) => status === 403)?.body.error?.code).toBe('quota_exceeded')
  expect(await stored(api)).toHaveLength(3)
  const won = answers.findIndex(({ status }) => status === 201) + 1
  expect((await post(won)).status).toBe(201)
  expect((await api.call('POST /v1/instances', { as: 'olaf', body: instanceBody })).status).toBe(201)
})
