import { expect, test } from 'vitest'
import { FINALIZER } from '../../../crds/names.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import type { Store } from '../../../store/port.ts'
import { REGION_ID } from '../../../test/builders/shared-instance.ts'
import { type CallOptions, type InstanceApi, startInstanceApi } from '../../../test/support/api/instance-api.ts'
import { expectCreated, instanceOf, stored, instanceBody } from '../../../test/support/api/instance-calls.ts'

const { identifier, ...body } = instanceBody
const PATH = `/v1/instances/by-identifier/${identifier}`
const put = (api: InstanceApi, more: object = {}, options: CallOptions = {}) =>
  api.call(`PUT ${PATH}`, { body: { ...body, ...more }, ...options })
const remove = (api: InstanceApi) => api.call(`DELETE ${PATH}`)
const codeOf = ({ status, body: { error } }: Awaited<ReturnType<InstanceApi['call']>>) => `${status} ${error?.code ?? 'OK'}`

test('a PUT makes the database once, and gives the same one with its credentials from then on', async () => {
  await using api = await startInstanceApi()
  const first = await put(api)
  expect(first).toMatchObject({
    status: 201,
    body: { data: { instance: { identifier, password: 'password-1', isEnabled: true } } },
  })
  const again = await put(api)
  expect(again.status).toBe(200)
  expect(instanceOf(again)).toEqual(instanceOf(first))
  expect(await stored(api)).toHaveLength(1)
})

test('many PUTs at once make one database, and one of them says that it did', async () => {
  await using api = await startInstanceApi()
  const answers = await Promise.all(Array.from({ length: 20 }, () => put(api, { ttl: 3600 })))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array.from({ length: 19 }, () => 200), 201])
  expect(new Set(answers.map((answer) => instanceOf(answer).id)).size).toBe(1)
  expect(await stored(api)).toHaveLength(1)
})

test('one that POST made is found, and one that POST is making is waited for', async () => {
  await using api = await startInstanceApi()
  api.operator.pause()
  const posting = expectCreated(api)
  await expect.poll(async () => (await stored(api)).length).toBe(1)
  const putting = put(api)
  api.operator.resume()
  expect(instanceOf(await putting).id).toBe((await posting).id)
  expect((await putting).status).toBe(200)
})

test('one that POST gives up is made anew', async () => {
  await using api = await startInstanceApi()
  api.operator.pause()
  const posting = api.call('POST /v1/instances', { body: instanceBody })
  await expect.poll(async () => (await stored(api)).length).toBe(1)
  const putting = put(api)
  const [given] = await stored(api)
  if (!given) expect.fail('nothing was made')
  await api.store.delete(SharedInstance, given.metadata)
  api.operator.resume()
  expect((await posting).status).toBe(409)
  const answer = await putting
  expect(answer.status).toBe(201)
  expect(instanceOf(answer).id).not.toBe(given.metadata.uid)
})

test('one that is being deleted is waited for, and then another one is made', async () => {
  await using api = await startInstanceApi({ deleteMs: 0 })
  const { id } = instanceOf(await put(api))
  api.operator.pause()
  expect((await remove(api)).status).toBe(202)
  const putting = put(api)
  api.operator.resume()
  const answer = await putting
  expect(answer.status).toBe(201)
  expect(instanceOf(answer).id).not.toBe(id)
})

test('one that is not gone in time is 503, with when to try again', async () => {
  await using api = await startInstanceApi({ deleteMs: 0, changeMs: 100 })
  await put(api)
  api.operator.pause()
  await remove(api)
  const answer = await put(api)
  expect([codeOf(answer), answer.headers.get('Retry-After')]).toEqual(['503 unavailable', '5'])
  expect(answer.body.msg).toContain('still being deleted')
})

test('one that takes too long goes on, and the next PUT joins it', async () => {
  await using api = await startInstanceApi({ changeMs: 100 })
  api.operator.pause()
  expect(codeOf(await put(api))).toBe('503 unavailable')
  const [made] = await stored(api)
  expect(codeOf(await put(api))).toBe('503 unavailable')
  api.operator.resume()
  await expect.poll(async () => (await put(api)).status).toBe(200)
  expect((await stored(api)).map(({ metadata }) => metadata.uid)).toEqual([made?.metadata.uid])
})

test('one that the operator refuses leaves nothing', async () => {
  await using api = await startInstanceApi()
  api.operator.refuse(identifier, 'QuotaExceeded')
  expect(codeOf(await put(api))).toBe('403 quota_exceeded')
  await expect.poll(() => stored(api)).toEqual([])
})

test('a disabled one is given as it is', async () => {
  await using api = await startInstanceApi()
  const { id } = instanceOf(await put(api))
  await api.call(`PATCH /v1/instances/${id}`, { body: { isEnabled: false } })
  const answer = await put(api)
  expect([answer.status, instanceOf(answer).isEnabled, instanceOf(answer).password]).toEqual([200, false, 'password-1'])
})

test('a ttl starts again, without one the time stays, and a moment later is no change', async () => {
  await using api = await startInstanceApi()
  const first = instanceOf(await put(api, { ttl: 60 }))
  expect(instanceOf(await put(api)).expiresAt).toBe(first.expiresAt)
  expect(instanceOf(await put(api, { ttl: 60 })).expiresAt).toBe(first.expiresAt)
  const longer = instanceOf(await put(api, { ttl: 7200 })).expiresAt ?? ''
  expect(Date.parse(longer) - Date.now()).toBeGreaterThan(7_100_000)
  const shorter = instanceOf(await put(api, { ttl: 120 })).expiresAt ?? ''
  expect(Date.parse(shorter) - Date.now()).toBeLessThan(121_000)
})

test.each([
  {
    does: 'another motor',
    more: { motor: 'postgresql-14.4.0' },
    is: '409 conflict',
    says: 'a postgresql-15.4.0, not a postgresql-14.4.0',
  },
  { does: 'a motor of no region', more: { motor: 'oracle-23' }, is: '422 unsupported_motor', says: 'oracle-23' },
  { does: 'an unknown region', more: { region: crypto.randomUUID() }, is: '422 unknown_region', says: 'unknown region' },
  { does: 'the same region in other letters', more: { region: REGION_ID.toUpperCase() }, is: '200 OK', says: 'OK' },
])('a PUT with $does, of one that is there, is $is', async ({ more, is, says }) => {
  await using api = await startInstanceApi()
  await put(api)
  const answer = await put(api, more)
  expect(codeOf(answer)).toBe(is)
  expect(answer.body.msg).toContain(says)
})

test('two of one identifier are 409, for PUT and for DELETE, and nothing happens to them', async () => {
  await using api = await startInstanceApi()
  await expectCreated(api)
  await expectCreated(api)
  for (const answer of [await put(api), await remove(api)]) {
    expect(codeOf(answer)).toBe('409 conflict')
    expect(answer.body.msg).toBe('2 databases have the identifier pr-42; name one of them by its id')
  }
  expect(await stored(api)).toHaveLength(2)
})

test('one whose identifier was changed is not found by the old one, whose next database is another', async () => {
  await using api = await startInstanceApi()
  const { id } = instanceOf(await put(api))
  await api.call(`PATCH /v1/instances/${id}`, { body: { identifier: 'renamed' } })
  const answers = await Promise.all(Array.from({ length: 5 }, () => put(api)))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 201])
  const ids = new Set(answers.map((answer) => instanceOf(answer).id))
  expect([ids.size, ids.has(id)]).toEqual([1, false])
  expect(await stored(api)).toHaveLength(2)
})

test('DELETE is 200 when there is none, when there was one, and when another deletes it', async () => {
  await using api = await startInstanceApi()
  expect(codeOf(await remove(api))).toBe('200 OK')
  await put(api)
  const answers = await Promise.all([remove(api), remove(api)])
  expect(answers.map(codeOf)).toEqual(['200 OK', '200 OK'])
  expect(await stored(api)).toEqual([])
  expect(codeOf(await remove(api))).toBe('200 OK')
})

test('a version that the caller expects is held to: one that is there, one that is not', async () => {
  await using api = await startInstanceApi()
  const headers = (version: string) => ({ headers: { 'If-Match': version } })
  expect(codeOf(await put(api, {}, headers('*')))).toBe('409 conflict')
  expect(codeOf(await api.call(`DELETE ${PATH}`, headers('*')))).toBe('409 conflict')
  const etag = (await put(api)).headers.get('ETag') ?? ''
  expect(codeOf(await put(api, {}, headers('"1"')))).toBe('409 conflict')
  expect(codeOf(await put(api, {}, headers(etag)))).toBe('200 OK')
  expect(codeOf(await api.call(`DELETE ${PATH}`, headers('"1"')))).toBe('409 conflict')
})

test('a namespace that is full takes no other one, and gives the one that is there', async () => {
  await using api = await startInstanceApi({ perNamespace: 1 })
  await put(api)
  expect(codeOf(await put(api))).toBe('200 OK')
  expect(codeOf(await api.call('PUT /v1/instances/by-identifier/other', { body }))).toBe('403 quota_exceeded')
})

test('the object has a finalizer and no deadline: what is not claimed in time goes on', async () => {
  await using api = await startInstanceApi()
  await put(api)
  const [object] = await stored(api)
  expect(object?.metadata.finalizers).toEqual([FINALIZER])
  expect(Object.keys(object?.metadata.annotations ?? {}).filter((name) => name.includes('deadline'))).toEqual([])
})

test('one that came between the look and the creation is joined', async () => {
  let meanwhile: (() => Promise<unknown>) | undefined
  const between = (store: Store): Store => ({
    ...store,
    async create(kind, draft) {
      const next = meanwhile
      meanwhile = undefined
      await next?.()
      return store.create(kind, draft)
    },
  })
  await using api = await startInstanceApi({ between })
  let other: string | undefined
  meanwhile = async () => (other = instanceOf(await put(api)).id)
  const answer = await put(api)
  expect([answer.status, instanceOf(answer).id]).toEqual([200, other])
})
