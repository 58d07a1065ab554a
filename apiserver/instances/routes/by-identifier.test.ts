import { expect, test } from 'vitest'
import { FINALIZER } from '../../../crds/names.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import type { Store } from '../../../store/port.ts'
import { REGION_ID } from '../../../test/builders/resources.ts'
import {
  type CallOptions,
  type InstanceApi,
  startInstanceApi,
  expectCreated,
  instanceOf,
  stored,
  instanceBody,
} from '../../../test/support/api/instance-api.ts'

const { identifier, ...body } = instanceBody
const PATH = `/v1/instances/by-identifier/${identifier}`
const put = (api: InstanceApi, more: object = {}, options: CallOptions = {}) =>
  api.call(`PUT ${PATH}`, { body: { ...body, ...more }, ...options })
const remove = (api: InstanceApi) => api.call(`DELETE ${PATH}`)
const codeOf = ({ status, body: { error } }: Awaited<ReturnType<InstanceApi['call']>>) => `${status} ${error?.code ?? 'OK'}`

test('PUT creates the database once, and returns it with its credentials afterwards', async () => {
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

test('many simultaneous PUTs create one database, and only one answers 201', async () => {
  await using api = await startInstanceApi()
  const answers = await Promise.all(Array.from({ length: 20 }, () => put(api, { ttl: 3600 })))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array.from({ length: 19 }, () => 200), 201])
  expect(new Set(answers.map((answer) => instanceOf(answer).id)).size).toBe(1)
  expect(await stored(api)).toHaveLength(1)
})

test('PUT returns a database created by POST, and waits for one that POST is creating', async () => {
  await using api = await startInstanceApi()
  api.operator.pause()
  const posting = expectCreated(api)
  await expect.poll(async () => (await stored(api)).length).toBe(1)
  const putting = put(api)
  api.operator.resume()
  expect(instanceOf(await putting).id).toBe((await posting).id)
  expect((await putting).status).toBe(200)
})

test('PUT creates a database again that POST gave up', async () => {
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

test('PUT waits for a database that is being deleted, then creates another', async () => {
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

test('PUT is 503 with Retry-After when a deletion takes too long', async () => {
  await using api = await startInstanceApi({ deleteMs: 0, changeMs: 100 })
  await put(api)
  api.operator.pause()
  await remove(api)
  const answer = await put(api)
  expect([codeOf(answer), answer.headers.get('Retry-After')]).toEqual(['503 unavailable', '5'])
  expect(answer.body.msg).toContain('still being deleted')
})

test('a creation that takes too long continues, and the next PUT joins it', async () => {
  await using api = await startInstanceApi({ changeMs: 100 })
  api.operator.pause()
  expect(codeOf(await put(api))).toBe('503 unavailable')
  const [made] = await stored(api)
  expect(codeOf(await put(api))).toBe('503 unavailable')
  api.operator.resume()
  await expect.poll(async () => (await put(api)).status).toBe(200)
  expect((await stored(api)).map(({ metadata }) => metadata.uid)).toEqual([made?.metadata.uid])
})

test('a creation that the operator rejects leaves nothing', async () => {
  await using api = await startInstanceApi()
  api.operator.refuse(identifier, 'QuotaExceeded')
  expect(codeOf(await put(api))).toBe('403 quota_exceeded')
  await expect.poll(() => stored(api)).toEqual([])
})

test('PUT returns a disabled database as disabled', async () => {
  await using api = await startInstanceApi()
  const { id } = instanceOf(await put(api))
  await api.call(`PATCH /v1/instances/${id}`, { body: { isEnabled: false } })
  const answer = await put(api)
  expect([answer.status, instanceOf(answer).isEnabled, instanceOf(answer).password]).toEqual([200, false, 'password-1'])
})

test('PUT restarts the ttl; without a ttl, or within a second, the expiry stays', async () => {
  await using api = await startInstanceApi()
  const first = instanceOf(await put(api, { ttl: 60 }))
  expect(instanceOf(await put(api)).expiresAt).toBe(first.expiresAt)
  const same = instanceOf(await put(api, { ttl: 60 })).expiresAt
  const movedMs = Date.parse(same ?? '') - Date.parse(first.expiresAt ?? '')
  // On a busy machine, the request may come more than a second later.
  expect(movedMs === 0 || movedMs >= 1_000, `moved by ${movedMs} ms`).toBe(true)
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
])('PUT with $does for an existing database is $is', async ({ more, is, says }) => {
  await using api = await startInstanceApi()
  await put(api)
  const answer = await put(api, more)
  expect(codeOf(answer)).toBe(is)
  expect(answer.body.msg).toContain(says)
})

test('PUT, GET and DELETE are 409 and change nothing when two databases have the identifier', async () => {
  await using api = await startInstanceApi()
  await expectCreated(api)
  await expectCreated(api)
  for (const answer of [await put(api), await api.call(`GET ${PATH}`), await remove(api)]) {
    expect(codeOf(answer)).toBe('409 conflict')
    expect(answer.body.msg).toBe('2 databases have the identifier pr-42; name one of them by its id')
  }
  expect(await stored(api)).toHaveLength(2)
})

test('GET returns the database of an identifier without and with its credentials', async () => {
  await using api = await startInstanceApi()
  expect(codeOf(await api.call(`GET ${PATH}`))).toBe('404 not_found')
  const made = instanceOf(await put(api))
  const plain = await api.call(`GET ${PATH}`)
  expect(instanceOf(plain)).toEqual({ ...made, password: null, uri: null, tls: { ...made.tls, ca: null } })
  expect(plain.headers.get('ETag')).toBe((await api.call(`GET /v1/instances/${made.id}`)).headers.get('ETag'))
  expect(instanceOf(await api.call(`GET ${PATH}?include=credentials`))).toEqual(made)
  expect(codeOf(await api.call(`GET ${PATH}?include=all`))).toBe('400 invalid_request')
  expect(codeOf(await api.call(`GET ${PATH}`, { as: 'vera' }))).toBe('200 OK')
  expect(codeOf(await api.call(`GET ${PATH}?include=credentials`, { as: 'vera' }))).toBe('403 forbidden')
})

test('GET shows a database that is being deleted, without credentials', async () => {
  await using api = await startInstanceApi({ deleteMs: 0 })
  const { id } = instanceOf(await put(api))
  api.operator.pause()
  await remove(api)
  expect(instanceOf(await api.call(`GET ${PATH}`))).toMatchObject({ id, isEnabled: false })
  expect(codeOf(await api.call(`GET ${PATH}?include=credentials`))).toBe('409 conflict')
  api.operator.resume()
})

test('PUT creates a new database for an identifier that another database had before', async () => {
  await using api = await startInstanceApi()
  const { id } = instanceOf(await put(api))
  await api.call(`PATCH /v1/instances/${id}`, { body: { identifier: 'renamed' } })
  const answers = await Promise.all(Array.from({ length: 5 }, () => put(api)))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 201])
  const ids = new Set(answers.map((answer) => instanceOf(answer).id))
  expect([ids.size, ids.has(id)]).toEqual([1, false])
  expect(await stored(api)).toHaveLength(2)
})

test('DELETE is 200 without a database, after a deletion, and while another request deletes it', async () => {
  await using api = await startInstanceApi()
  expect(codeOf(await remove(api))).toBe('200 OK')
  await put(api)
  const answers = await Promise.all([remove(api), remove(api)])
  expect(answers.map(codeOf)).toEqual(['200 OK', '200 OK'])
  expect(await stored(api)).toEqual([])
  expect(codeOf(await remove(api))).toBe('200 OK')
})

test('If-Match is checked against an existing and against a missing database', async () => {
  await using api = await startInstanceApi()
  const headers = (version: string) => ({ headers: { 'If-Match': version } })
  expect(codeOf(await put(api, {}, headers('*')))).toBe('409 conflict')
  expect(codeOf(await api.call(`DELETE ${PATH}`, headers('*')))).toBe('409 conflict')
  const etag = (await put(api)).headers.get('ETag') ?? ''
  expect(codeOf(await put(api, {}, headers('"1"')))).toBe('409 conflict')
  expect(codeOf(await put(api, {}, headers(etag)))).toBe('200 OK')
  expect(codeOf(await api.call(`DELETE ${PATH}`, headers('"1"')))).toBe('409 conflict')
})

test('a full namespace accepts no new database, and PUT still returns an existing one', async () => {
  await using api = await startInstanceApi({ perNamespace: 1 })
  await put(api)
  expect(codeOf(await put(api))).toBe('200 OK')
  expect(codeOf(await api.call('PUT /v1/instances/by-identifier/other', { body }))).toBe('403 quota_exceeded')
})

test('the object has a finalizer and no claim deadline, so a slow claim continues', async () => {
  await using api = await startInstanceApi()
  await put(api)
  const [object] = await stored(api)
  expect(object?.metadata.finalizers).toEqual([FINALIZER])
  expect(Object.keys(object?.metadata.annotations ?? {}).filter((name) => name.includes('deadline'))).toEqual([])
})

test('PUT joins a database created between its read and its creation', async () => {
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
