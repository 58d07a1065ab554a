import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { codeOf, fieldsOf, type Instance } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { query } from '../support/postgresql/sql.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { LATER } from '../support/patience.ts'

/** Databases by identifier, as pipelines use them: repeated calls give one database for each identifier. */

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const pathOf = (identifier: string) => `/v1/instances/by-identifier/${encodeURIComponent(identifier)}`
const body = (more: object = {}) => ({ region: deployment.installation.region.id, motor: deployment.installation.motor, ...more })
const put = (identifier: string, more: object = {}) => acme.as('editor')('PUT', pathOf(identifier), { body: body(more) })
const remove = (identifier: string) => acme.as('editor')('DELETE', pathOf(identifier))
const listed = async (identifier: string) =>
  (await expectSuccess(acme.as('viewer')('GET', `/v1/instances?identifier=${encodeURIComponent(identifier)}`))).body.data
    .instances

test('PUT creates a working database and then returns the same one; DELETE removes it and may be repeated', async () => {
  const first = await put('pr-1', { ttl: 3600 })
  expect(first.status).toBe(201)
  const { instance } = first.body.data
  await query(instance, 'CREATE TABLE kept AS SELECT 1 AS i')
  const again = await put('pr-1')
  expect([again.status, again.body.data.instance]).toEqual([200, instance])
  expect(await query(again.body.data.instance, 'SELECT i FROM kept')).toEqual([{ i: 1 }])
  for (let times = 0; times < 2; times++) expect(codeOf(await remove('pr-1'))).toBe('200 OK')
  expect(await listed('pr-1')).toEqual([])
  const next = await put('pr-1')
  expect([next.status, next.body.data.instance.id === instance.id]).toEqual([201, false])
})

test('twenty concurrent PUTs create exactly one database', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => put('crowd', { ttl: 3600 })))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array.from({ length: 19 }, () => 200), 201])
  const instances = answers.map((answer) => answer.body.data.instance)
  expect(new Set(instances.map(({ id, password }) => `${id} ${password}`)).size).toBe(1)
  expect(await listed('crowd')).toHaveLength(1)
  for (const { expiresAt } of instances) expect(expiresAt).not.toBeNull()
})

test('PUT returns the database that POST created; PUT and DELETE are 409 when two have the identifier', async () => {
  const made = await acme.instance({ identifier: 'by-post' })
  expect((await put('by-post')).body.data.instance.id).toBe(made.id)
  await acme.instance({ identifier: 'by-post' })
  for (const answer of [await put('by-post'), await remove('by-post')]) {
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['409 conflict', ['identifier']])
  }
  expect(await listed('by-post')).toHaveLength(2)
})

test('concurrent PUTs share one database, also beside concurrent POSTs', async () => {
  const [puts] = await Promise.all([
    Promise.all(Array.from({ length: 6 }, () => put('race'))),
    acme.instance({ identifier: 'other-race' }),
    acme.instance({ identifier: 'other-race' }),
  ])
  expect(new Set(puts.map((answer) => answer.body.data.instance.id)).size).toBe(1)
})

test('concurrent DELETE and PUT leave one database or none', async () => {
  await put('churn')
  const answers = await Promise.all([remove('churn'), put('churn'), remove('churn'), put('churn')])
  for (const answer of answers) expect(['200 OK', '201 OK', '409 conflict']).toContain(codeOf(answer))
  const last = await put('churn')
  expect([200, 201]).toContain(last.status)
  expect(await listed('churn')).toHaveLength(1)
})

describe('an identifier in the path is percent-encoded:', () => {
  test.each(['feature/a b', 'PR #7', 'a+b', 'x@y:z', 'password', 'v1.2/..', '0'])('%s', async (identifier) => {
    const made = await put(identifier)
    expect([made.status, made.body.data.instance.identifier]).toEqual([201, identifier])
    expect((await put(identifier)).status).toBe(200)
    expect(codeOf(await remove(identifier))).toBe('200 OK')
  })

  test.each(['100%', '', ' a', 'Jörg', `x'; --`, 'x'.repeat(64)])('an invalid identifier is rejected: %j', async (identifier) => {
    for (const answer of [await put(identifier), await remove(identifier)]) {
      if (identifier === '') expect(codeOf(answer)).toBe('404 not_found')
      else expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', ['identifier']])
    }
  })
})

describe('the expiry time of a database', () => {
  test('is renewed by PUT with ttl and kept by PUT without ttl', async () => {
    const first = (await put('timed', { ttl: 60 })).body.data.instance
    const untouched = (await put('timed')).body.data.instance
    expect(untouched.expiresAt).toBe(first.expiresAt)
    const before = Date.now()
    const again = (await put('timed', { ttl: 7200 })).body.data.instance
    expect(Date.parse(again.expiresAt ?? '') - before).toBeGreaterThanOrEqual(7_200_000)
  })

  test('is set by PATCH with ttl, counted from now, and ttl with expiresAt is rejected', async () => {
    const { id } = await acme.instance({ ttl: 60 })
    const patch = (change: object) => acme.as('editor')('PATCH', `/v1/instances/${id}`, { body: change })
    const before = Date.now()
    const { expiresAt } = (await expectSuccess(patch({ ttl: 7200 }))).body.data.instance
    expect(Date.parse(expiresAt ?? '') - before).toBeGreaterThanOrEqual(7_200_000)
    expect(Date.parse(expiresAt ?? '') - Date.now()).toBeLessThanOrEqual(7_200_000)
    for (const end of ['2030-01-01T00:00:00Z', null]) {
      const answer = await patch({ ttl: 60, expiresAt: end })
      expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', ['expiresAt']])
    }
    for (const ttl of [59, 2_592_001, '60', null]) expect([ttl, fieldsOf(await patch({ ttl }))]).toEqual([ttl, ['ttl']])
  })
})

test.each([
  { what: 'without a motor', more: { motor: undefined }, is: '400 invalid_request', fields: ['motor'] },
  { what: 'with an identifier in the body', more: { identifier: 'x' }, is: '400 invalid_request', fields: ['identifier'] },
  { what: 'with an unknown motor', more: { motor: 'oracle-23' }, is: '422 unsupported_motor', fields: ['motor'] },
  { what: 'with an unknown region', more: { region: '42' }, is: '422 unknown_region', fields: ['region'] },
  {
    what: 'with an unknown template',
    more: { template: crypto.randomUUID() },
    is: '400 invalid_request',
    fields: ['template'],
  },
])('PUT $what is $is and creates nothing', async ({ more, is, fields }) => {
  const answer = await put('refused', more)
  expect([codeOf(answer), fieldsOf(answer)]).toEqual([is, fields])
  expect(await listed('refused')).toEqual([])
})

test('a viewer may neither PUT nor DELETE, and the error names the required role', async () => {
  await put('guarded')
  const viewer = acme.as('viewer')
  for (const answer of [await viewer('PUT', pathOf('guarded'), { body: body() }), await viewer('DELETE', pathOf('guarded'))]) {
    expect(codeOf(answer)).toBe('403 forbidden')
    expect(answer.body.msg).toContain('needs the role editor; you are viewer')
  }
  expect(await listed('guarded')).toHaveLength(1)
})

describe('credentials', () => {
  let made: Instance
  const read = (role: 'viewer' | 'editor' | 'admin', search: string) => acme.as(role)('GET', `/v1/instances/${made.id}${search}`)
  beforeAll(async () => {
    made = await acme.instance({ identifier: 'secret' })
  })

  test.each(['editor', 'admin'] as const)('are returned to an %s on request', async (role) => {
    const { body: answer } = await expectSuccess(read(role, '?include=credentials'))
    expect(answer.data.instance).toEqual(made)
    expect(await query(answer.data.instance, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  test('are not returned unless requested', async () => {
    const { instance } = (await expectSuccess(read('admin', ''))).body.data
    expect([instance.password, instance.uri, instance.tls.ca]).toEqual([null, null, null])
  })

  test('are not returned to a viewer, and the error names the required role', async () => {
    const answer = await read('viewer', '?include=credentials')
    expect(codeOf(answer)).toBe('403 forbidden')
    expect(answer.body.msg).toMatch(/^reading credentials needs the role editor; you are viewer: ask an admin of /)
    expect(JSON.stringify(answer.body)).not.toContain(made.password)
  })

  test('are not returned by lists or to another tenant', async () => {
    expect(fieldsOf(await acme.as('editor')('GET', '/v1/instances?include=credentials'))).toEqual(['include'])
    expect(fieldsOf(await read('editor', '?include=password'))).toEqual(['include'])
    const other = await deployment.namespace()
    expect(codeOf(await other.as('admin')('GET', `/v1/instances/${made.id}?include=credentials`))).toBe('404 not_found')
  })

  test('are recorded in the audit log with each reader, by GET and by PUT, and without their values', async () => {
    await expectSuccess(put('secret'))
    const byIdentifier = await expectSuccess(acme.as('admin')('GET', `${pathOf('secret')}?include=credentials`))
    expect(byIdentifier.body.data.instance).toEqual(made)
    await vi.waitFor(async () => {
      const { body: answer } = await expectSuccess(acme.as('viewer')('GET', `${acme.path}/audit?id=${made.id}&action=read`))
      const { entries } = answer.data
      expect(entries.map(({ actor }) => actor?.name.replace(/-[0-9a-f-]{36}$/, ''))).toEqual([
        'local:admin',
        'local:editor',
        'local:admin',
        'local:editor',
      ])
      for (const { changes, via } of entries) expect([changes, via]).toEqual([[], 'rest'])
      expect(JSON.stringify(answer)).not.toContain(made.password)
    }, LATER)
  })
})
