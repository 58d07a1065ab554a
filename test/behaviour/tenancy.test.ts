import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codeOf, fieldsOf } from '../support/api/answers.ts'
import { freshSlug, openDeployment } from '../support/deployment/deployment.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { LATER } from '../support/patience.ts'

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const MILLISECONDS = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string
const DAY_MS = 86_400_000

describe('GET /v1/me', () => {
  test.each(['shared', 'dedicated'] as const)('returns the user and roles of the caller on the %s listener', async (on) => {
    const token = await deployment.tokens.mint({ subject: 'ada', namespace: acme.home, role: 'admin' })
    const { status, body } = await deployment.call('GET', '/v1/me', { on, token })
    expect(status).toBe(200)
    expect(body.data).toEqual({
      user: 'local:ada',
      groups: [expect.stringContaining('admin')],
      namespaces: [{ organization: acme.organization, namespace: acme.namespace, role: 'admin' }],
    })
  })
})

describe('organizations', () => {
  test('are created, listed, read and deleted', async () => {
    const slug = freshSlug()
    const created = await deployment.call('POST', '/v1/organizations', { body: { slug, name: 'Acme, Inc.' } })
    expect(created.status).toBe(201)
    const organization = { slug, name: 'Acme, Inc.', createdAt: MILLISECONDS }
    expect(created.body.data).toEqual({ organization })
    expect((await deployment.call('GET', `/v1/organizations/${slug}`)).body.data).toEqual({ organization })
    expect((await deployment.call('GET', '/v1/organizations?limit=200')).body.data.organizations).toContainEqual(organization)
    expect(await deployment.call('DELETE', `/v1/organizations/${slug}`)).toMatchObject({
      status: 200,
      body: { msg: 'OK', data: {} },
    })
    expect(codeOf(await deployment.call('GET', `/v1/organizations/${slug}`))).toBe('404 not_found')
    expect(codeOf(await deployment.call('DELETE', `/v1/organizations/${slug}`))).toBe('404 not_found')
  })

  test('have a unique slug', async () => {
    const again = await deployment.call('POST', '/v1/organizations', { body: { slug: acme.organization, name: 'x' } })
    expect(codeOf(again)).toBe('409 conflict')
  })

  test.each(['', 'A', '1a', 'a--b', '-a', 'a-', 'a_b', 'a/b', 'ä', 'x'.repeat(31), 7])('reject the slug %j', async (slug) => {
    const answer = await deployment.call('POST', '/v1/organizations', { body: { slug, name: 'x' } })
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', ['slug']])
  })

  test('cannot be deleted while they have a namespace', async () => {
    const answer = await deployment.call('DELETE', `/v1/organizations/${acme.organization}`)
    expect(codeOf(answer)).toBe('409 conflict')
    expect(answer.body.msg).toMatch(/1 namespace; delete it first$|\d namespaces; delete them first$/)
  })

  test('are visible only to callers with a role in one of their namespaces', async () => {
    const otherTenant = await deployment.namespace()
    expect((await acme.as('viewer')('GET', '/v1/organizations')).body.data.organizations.map(({ slug }) => slug)).toEqual([
      acme.organization,
    ])
    expect(codeOf(await otherTenant.as('admin')('GET', `/v1/organizations/${acme.organization}`))).toBe('404 not_found')
    expect(codeOf(await otherTenant.as('admin')('GET', `/v1/organizations/${acme.organization}/namespaces`))).toBe(
      '404 not_found',
    )
  })
})

describe('namespaces', () => {
  const namespacesPath = () => `/v1/organizations/${acme.organization}/namespaces`

  test('are created, listed, read and deleted', async () => {
    const slug = freshSlug()
    const created = await deployment.call('POST', namespacesPath(), { body: { slug, name: 'Staging' } })
    expect(created.status).toBe(201)
    const namespace = { slug, name: 'Staging', organization: acme.organization, createdAt: MILLISECONDS }
    expect(created.body.data).toEqual({ namespace })
    const path = `${namespacesPath()}/${slug}`
    expect((await deployment.call('GET', path)).body.data).toMatchObject({ namespace })
    expect((await deployment.call('GET', namespacesPath())).body.data.namespaces).toContainEqual(namespace)
    expect(await deployment.call('DELETE', path)).toMatchObject({ status: 200, body: { msg: 'OK', data: {} } })
    expect(codeOf(await deployment.call('GET', path))).toBe('404 not_found')
  })

  test('work for every role as soon as the creation is answered', async () => {
    const tenant = await deployment.namespace()
    for (const role of ['viewer', 'editor', 'admin'] as const)
      expect((await tenant.as(role)('GET', '/v1/instances')).status).toBe(200)
  })

  test('show how much of each quota is used', async () => {
    const tenant = await deployment.namespace()
    await tenant.tunnel()
    await tenant.instance()
    const quotaOf = async () => (await tenant.as('viewer')('GET', tenant.path)).body.data.namespace.quota
    const limit = expect.any(Number) as number
    await expect.poll(quotaOf, LATER).toEqual({
      instances: { used: 1, limit },
      databases: { used: 0, limit },
      tunnels: { used: 1, limit },
      apiTokens: { used: 0, limit: 20 },
    })
  })

  test('have a slug that is unique in the organization', async () => {
    const again = await deployment.call('POST', namespacesPath(), { body: { slug: acme.namespace, name: 'x' } })
    expect(codeOf(again)).toBe('409 conflict')
  })

  test('cannot be deleted while they have an instance or an API token', async () => {
    const tenant = await deployment.namespace()
    const { id } = await tenant.instance()
    const answer = await deployment.call('DELETE', tenant.path)
    expect([codeOf(answer), answer.body.msg]).toEqual(['409 conflict', 'the namespace is not empty: 1 database; delete it first'])
    await expectSuccess(tenant.as('editor')('DELETE', `/v1/instances/${id}`))
    await expectSuccess(tenant.as('admin')('POST', `${tenant.path}/api-tokens`, { body: { name: 'x', role: 'viewer' } }))
    expect(codeOf(await deployment.call('DELETE', tenant.path))).toBe('409 conflict')
  })

  test('change only with the current version in If-Match', async () => {
    const { headers } = await deployment.call('GET', acme.path)
    expect(headers.etag).toMatch(/^"[^"]+"$/)
    expect(codeOf(await deployment.call('DELETE', acme.path, { headers: { 'If-Match': '"1"' } }))).toBe('409 conflict')
  })
})

describe('members', () => {
  const subject = 'corp:ada+ops@example.com'
  const at = (who: string) => `${acme.path}/members/${encodeURIComponent(who)}`

  test('are added, listed, changed and removed', async () => {
    const admin = acme.as('admin')
    const added = await admin('PUT', at(subject), { body: { role: 'viewer' } })
    expect(added).toMatchObject({ status: 201, body: { data: { member: { subject, role: 'viewer' } } } })
    expect((await admin('PUT', at(subject), { body: { role: 'viewer' } })).status).toBe(200)
    expect(await admin('PUT', at(subject), { body: { role: 'editor' } })).toMatchObject({
      status: 200,
      body: { data: { member: { subject, role: 'editor' } } },
    })
    expect((await admin('GET', `${acme.path}/members`)).body.data).toEqual({
      members: [{ subject, role: 'editor' }],
      nextCursor: null,
    })
    expect(await admin('DELETE', at(subject))).toMatchObject({ status: 200, body: { data: {} } })
    expect(codeOf(await admin('DELETE', at(subject)))).toBe('404 not_found')
    expect((await admin('GET', `${acme.path}/members`)).body.data.members).toEqual([])
  })

  test('are changed and removed only with the current version in If-Match', async () => {
    const admin = acme.as('admin')
    const who = at('corp:versions')
    const put = (role: string, version: string) => admin('PUT', who, { body: { role }, headers: { 'If-Match': version } })
    expect(codeOf(await put('viewer', '*'))).toBe('409 conflict')
    expect(codeOf(await admin('DELETE', who))).toBe('404 not_found')
    const { etag } = (await expectSuccess(admin('PUT', who, { body: { role: 'viewer' } }))).headers
    expect(codeOf(await put('editor', '"1"'))).toBe('409 conflict')
    const changed = await put('editor', String(etag))
    expect([codeOf(changed), changed.body.data.member.role]).toEqual(['200 OK', 'editor'])
    const remove = (version: string) => admin('DELETE', who, { headers: { 'If-Match': version } })
    expect(codeOf(await remove(String(etag)))).toBe('409 conflict')
    expect(codeOf(await remove(String(changed.headers.etag)))).toBe('200 OK')
  })

  test('gain and lose their role as soon as the change is answered', async () => {
    const token = await deployment.tokens.mint({ subject: 'grace' })
    const grace = (method: string, path: string, body?: unknown) => deployment.call(method, path, { token, body })
    expect(codeOf(await grace('GET', acme.path))).toBe('404 not_found')
    await expectSuccess(acme.as('admin')('PUT', at('local:grace'), { body: { role: 'viewer' } }))
    expect((await grace('GET', acme.path)).status).toBe(200)
    expect(codeOf(await grace('POST', '/v1/instances', deployment.instanceBody()))).toBe('403 forbidden')
    await expectSuccess(acme.as('admin')('PUT', at('local:grace'), { body: { role: 'editor' } }))
    const { id } = (await expectSuccess(grace('POST', '/v1/instances', deployment.instanceBody()))).body.data.instance
    await expectSuccess(acme.as('admin')('DELETE', at('local:grace')))
    expect(codeOf(await grace('GET', `/v1/instances/${id}`))).toBe('404 not_found')
  })

  test.each(['system:masters', 'system:serviceaccount:a:b', 'mooring:platform-admins', 'x'.repeat(257), 'a\u0000b', 'a\nb'])(
    'cannot have the subject %j',
    async (who) => {
      expect(codeOf(await acme.as('admin')('PUT', at(who), { body: { role: 'viewer' } }))).toBe('400 invalid_request')
    },
  )

  test.each([{ role: 'root' }, { role: 'platform-admin' }, {}, { role: 'viewer', until: 'x' }])(
    'reject the body %j',
    async (body) => {
      expect(codeOf(await acme.as('admin')('PUT', at('corp:bob'), { body }))).toBe('400 invalid_request')
    },
  )
})

describe('API tokens', () => {
  test('are created, listed without the token, and deleted', async () => {
    const admin = acme.as('admin')
    const created = await admin('POST', `${acme.path}/api-tokens`, { body: { name: 'CI of main', role: 'editor' } })
    expect(created.status).toBe(201)
    const { apiToken } = created.body.data
    const shown = { id: apiToken.id, name: 'CI of main', role: 'editor', expiresAt: MILLISECONDS, createdAt: MILLISECONDS }
    expect(apiToken).toEqual({ ...shown, token: expect.stringMatching(/^moor_[0-9A-Za-z]{46}$/) as string })
    const life = Date.parse(apiToken.expiresAt) - Date.now()
    expect(Math.round(life / DAY_MS)).toBe(90)
    const { token } = apiToken
    expect((await deployment.call('POST', '/v1/instances', { token, body: deployment.instanceBody() })).status).toBe(201)
    expect((await deployment.call('GET', '/v1/me', { token })).body.data).toMatchObject({
      namespaces: [{ organization: acme.organization, namespace: acme.namespace, role: 'editor' }],
    })
    expect((await admin('GET', `${acme.path}/api-tokens`)).body.data).toEqual({ apiTokens: [shown], nextCursor: null })
    expect(await admin('DELETE', `${acme.path}/api-tokens/${apiToken.id}`)).toMatchObject({ status: 200, body: { data: {} } })
    expect(codeOf(await admin('DELETE', `${acme.path}/api-tokens/${apiToken.id}`))).toBe('404 not_found')
    expect(codeOf(await deployment.call('GET', '/v1/me', { token }))).toBe('401 unauthenticated')
  })

  test('have a version, which conditional reads and revocations compare', async () => {
    const admin = acme.as('admin')
    const created = await admin('POST', `${acme.path}/api-tokens`, { body: { name: 'once', role: 'viewer' } })
    const { token, ...shown } = created.body.data.apiToken
    expect(codeOf(await deployment.call('GET', '/v1/me', { token }))).toBe('200 OK')
    const path = `${acme.path}/api-tokens/${shown.id}`
    const read = await acme.as('viewer')('GET', path)
    expect([codeOf(read), read.body.data.apiToken, read.headers.etag]).toEqual(['200 OK', shown, created.headers.etag])
    const revoke = (version: string) => admin('DELETE', path, { headers: { 'If-Match': version } })
    expect(codeOf(await revoke('"1"'))).toBe('409 conflict')
    expect(codeOf(await revoke(String(created.headers.etag)))).toBe('200 OK')
    expect(codeOf(await acme.as('viewer')('GET', path))).toBe('404 not_found')
  })

  test('accept an expiry time in any time zone, as databases do', async () => {
    const utc = new Date(Date.now() + 7 * DAY_MS)
    const expiresAt = `${new Date(utc.getTime() + 7_200_000).toISOString().slice(0, -1)}+02:00`
    const body = { name: 'x', role: 'viewer', expiresAt }
    const { apiToken } = (await expectSuccess(acme.as('admin')('POST', `${acme.path}/api-tokens`, { body }))).body.data
    const { expiresAt: ends } = await acme.instance({ expiresAt })
    expect([apiToken.expiresAt, ends]).toEqual([utc.toISOString(), utc.toISOString()])
  })

  test.each([
    { what: 'in the past', days: -1, is: '400 invalid_request' },
    { what: 'past a year', days: 366, is: '400 invalid_request' },
    { what: 'within a year', days: 364, is: '201 OK' },
  ])('with an expiry time $what are $is', async ({ days, is }) => {
    const expiresAt = new Date(Date.now() + days * DAY_MS).toISOString()
    const answer = await acme.as('admin')('POST', `${acme.path}/api-tokens`, { body: { name: 'x', role: 'viewer', expiresAt } })
    expect(codeOf(answer)).toBe(is)
  })

  test.each([
    { body: { role: 'viewer' }, fields: ['name'] },
    { body: { name: '', role: 'root' }, fields: ['name', 'role'] },
    { body: { name: 'x'.repeat(101), role: 'viewer' }, fields: ['name'] },
    { body: { name: 'x', role: 'viewer', scope: 'all' }, fields: ['scope'] },
  ])('with the invalid body $body are rejected', async ({ body, fields }) => {
    const answer = await acme.as('admin')('POST', `${acme.path}/api-tokens`, { body })
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', fields])
  })

  test('are at most 20 in a namespace', async () => {
    const tenant = await deployment.namespace()
    const admin = tenant.as('admin')
    const create = () => admin('POST', `${tenant.path}/api-tokens`, { body: { name: 'x', role: 'viewer' } })
    const answers = await Promise.all(Array.from({ length: 21 }, create))
    expect(answers.map(codeOf).sort()).toEqual([...Array.from({ length: 20 }, () => '201 OK'), '403 quota_exceeded'])
  })

  test('with an id of another namespace are not found', async () => {
    const other = await deployment.namespace()
    const created = await expectSuccess(
      other.as('admin')('POST', `${other.path}/api-tokens`, { body: { name: 'x', role: 'viewer' } }),
    )
    const { id } = created.body.data.apiToken
    expect(codeOf(await acme.as('admin')('DELETE', `${acme.path}/api-tokens/${id}`))).toBe('404 not_found')
    expect(codeOf(await acme.as('admin')('DELETE', `${other.path}/api-tokens/${id}`))).toBe('404 not_found')
  })
})
