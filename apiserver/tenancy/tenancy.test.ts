import { setTimeout } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Namespace, RoleBinding } from '../../crds/core.ts'
import { PLATFORM_ADMIN_GROUP } from '../../crds/names.ts'
import { TenantNamespace } from '../../crds/tenant-namespace.ts'
import { TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import { createCache } from '../../store/cache.ts'
import { type Answer, codeOf, fieldsOf } from '../../test/support/api/http-app.ts'
import { serveAcme, serveTenancy } from '../../test/support/api/tenancy-app.ts'
import { createTenancyDeps } from './tenancy-deps.ts'
import { createNamespace } from './namespaces.ts'

const token = 'root'
const NAMESPACE = '/v1/organizations/acme/namespaces/prod'

const data = (answer: Answer) => answer.body.data as Record<string, never>

describe('organizations', () => {
  test('are created, read, listed and deleted by a platform admin', async () => {
    await using app = await serveTenancy()
    const created = await app.call('POST', '/v1/organizations', { token, body: { slug: 'acme', name: 'Acme Ltd.' } })
    expect(created.status).toBe(201)
    expect(created.body.data).toEqual({
      organization: { slug: 'acme', name: 'Acme Ltd.', createdAt: expect.stringMatching(/\.\d{3}Z$/) as string },
    })
    const read = await app.call('GET', '/v1/organizations/acme', { token })
    expect(read.body.data).toEqual(created.body.data)
    const listed = await app.call('GET', '/v1/organizations', { token })
    expect(listed.body.data).toEqual({ organizations: [data(created).organization], nextCursor: null })
    const headers = { 'if-match': '"1"' }
    expect(codeOf(await app.call('DELETE', '/v1/organizations/acme', { token, headers }))).toBe('409 conflict')
    const deleted = await app.call('DELETE', '/v1/organizations/acme', {
      token,
      headers: { 'if-match': read.headers.get('etag') ?? '' },
    })
    expect(deleted.body).toEqual({ msg: 'OK', data: {} })
    expect(codeOf(await app.call('GET', '/v1/organizations/acme', { token }))).toBe('404 not_found')
  })

  test('are created only by platform admins, and visible only with a role in one of their namespaces', async () => {
    await using app = await serveAcme()
    const body = { slug: 'evil', name: 'Evil' }
    expect(codeOf(await app.call('POST', '/v1/organizations', { token: 'eve', body }))).toBe('403 forbidden')
    expect(codeOf(await app.call('GET', '/v1/organizations/acme', { token: 'eve' }))).toBe('404 not_found')
    expect(codeOf(await app.call('DELETE', '/v1/organizations/acme', { token: 'eve' }))).toBe('404 not_found')
    expect(codeOf(await app.call('DELETE', '/v1/organizations/acme', { token: 'admin' }))).toBe('403 forbidden')
    expect((await app.call('GET', '/v1/organizations', { token: 'eve' })).body.data).toMatchObject({ organizations: [] })
    expect((await app.call('GET', '/v1/organizations', { token: 'viewer' })).body.data).toMatchObject({
      organizations: [{ slug: 'acme' }],
    })
  })

  test('are deleted only without namespaces', async () => {
    await using app = await serveAcme()
    expect(codeOf(await app.call('DELETE', '/v1/organizations/acme', { token }))).toBe('409 conflict')
  })

  test.each(['Acme', 'a--b', '-a', 'a-', '1a', 'a_b', 'x'.repeat(31), ''])('may not have the slug "%s"', async (slug) => {
    await using app = await serveTenancy()
    expect(fieldsOf(await app.call('POST', '/v1/organizations', { token, body: { slug, name: 'x' } }))).toContain('slug')
  })

  test('honour an Idempotency-Key: same answer, 422 for another body, free when gone', async () => {
    await using app = await serveTenancy()
    const post = (body: object, headers = { 'idempotency-key': 'k1' }) =>
      app.call('POST', '/v1/organizations', { token, headers, body })
    const first = await post({ slug: 'acme', name: 'Acme' })
    expect(await post({ name: 'Acme', slug: 'acme' })).toMatchObject({ status: 201, body: first.body })
    expect(codeOf(await post({ slug: 'acme', name: 'Other' }))).toBe('422 idempotency_key_reused')
    expect(codeOf(await post({ slug: 'other', name: 'Acme' }))).toBe('422 idempotency_key_reused')
    expect(codeOf(await post({ slug: 'acme', name: 'Acme' }, { 'idempotency-key': 'k2' }))).toBe('409 conflict')
    expect(codeOf(await app.call('POST', '/v1/organizations', { token, body: { slug: 'acme', name: 'Acme' } }))).toBe(
      '409 conflict',
    )
    await app.call('DELETE', '/v1/organizations/acme', { token })
    expect(codeOf(await post({ slug: 'other', name: 'Other' }))).toBe('201 OK')
  })

  test('are created once by two simultaneous requests with one key', async () => {
    await using app = await serveTenancy()
    const headers = { 'idempotency-key': 'k1' }
    const send = () => app.call('POST', '/v1/organizations', { token, headers, body: { slug: 'acme', name: 'Acme' } })
    const answers = await Promise.all([send(), send(), send()])
    expect(answers.map(codeOf)).toEqual(['201 OK', '201 OK', '201 OK'])
  })

  test('are listed in pages', async () => {
    await using app = await serveTenancy()
    for (const slug of ['a', 'b', 'c']) await app.call('POST', '/v1/organizations', { token, body: { slug, name: slug } })
    const first = await app.call('GET', '/v1/organizations?limit=2', { token })
    const { organizations, nextCursor } = data(first) as unknown as { organizations: { slug: string }[]; nextCursor: string }
    const second = await app.call('GET', `/v1/organizations?limit=2&cursor=${nextCursor}`, { token })
    const rest = data(second) as unknown as typeof organizations & { organizations: { slug: string }[]; nextCursor: null }
    expect([...organizations, ...rest.organizations].map(({ slug }) => slug).sort()).toEqual(['a', 'b', 'c'])
    expect(rest.nextCursor).toBeNull()
    expect(fieldsOf(await app.call('GET', '/v1/organizations?cursor=nonsense', { token }))).toEqual(['cursor'])
  })
})

describe('namespaces', () => {
  test('have working roles when created, and are gone when deleted', async () => {
    await using app = await serveAcme()
    const read = await app.call('GET', NAMESPACE, { token: 'viewer' })
    expect(read.body.data).toMatchObject({ namespace: { slug: 'prod', name: 'Production', organization: 'acme' } })
    expect(app.roleBindings.list({ namespace: 'acme--prod' }).length).toBeGreaterThanOrEqual(3)
    const listed = await app.call('GET', '/v1/organizations/acme/namespaces', { token: 'viewer' })
    expect(listed.body.data).toMatchObject({ namespaces: [{ slug: 'prod' }], nextCursor: null })
    expect(codeOf(await app.call('DELETE', NAMESPACE, { token }))).toBe('200 OK')
    expect(codeOf(await app.call('GET', NAMESPACE, { token }))).toBe('404 not_found')
    expect(app.namespaces.get({ name: 'acme--prod' })).toBeUndefined()
  })

  test('are created once the API’s caches have them', async () => {
    await using app = await serveAcme()
    const namespaces = createCache({ store: app.store, kind: Namespace })
    const { handle } = createNamespace(createTenancyDeps({ ...app, namespaces, tokenSecret: new Uint8Array(32) }))
    const principal = { user: 'local:root', groups: [PLATFORM_ADMIN_GROUP] }
    const request = { principal, params: { organization: 'acme' }, body: { slug: 'late', name: 'Late' } }
    const answer = handle({ ...request, query: {}, arrivedAt: 0, requestId: '', sourceIp: '' })
    await expect.poll(() => app.roleBindings.list({ namespace: 'acme--late' }).length).toBeGreaterThanOrEqual(3)
    expect(await Promise.race([answer, setTimeout(50, 'waiting')])).toBe('waiting')
    const stop = new AbortController()
    const following = namespaces.run(stop.signal)
    expect((await answer).status).toBe(201)
    expect(namespaces.get({ name: 'acme--late' })).toBeDefined()
    stop.abort()
    await following
  })

  test('created by kubectl are read, deleted only when empty, and have the age of their Namespace', async () => {
    await using app = await serveAcme()
    const labels = { 'mooring.dev/organization': 'acme', 'mooring.dev/namespace': 'byhand' }
    const made = await app.store.create(Namespace, { metadata: { name: 'acme--byhand', labels } })
    const path = '/v1/organizations/acme/namespaces/byhand'
    await expect.poll(async () => codeOf(await app.call('GET', path, { token }))).toBe('200 OK')
    const createdAt = made.metadata.creationTimestamp.replace('Z', '.000Z')
    expect((await app.call('GET', path, { token })).body.data).toMatchObject({
      namespace: { slug: 'byhand', name: 'byhand', organization: 'acme', createdAt },
    })
    await app.call('POST', `${path}/api-tokens`, { token, body: { name: 'ci', role: 'viewer' } })
    expect(codeOf(await app.call('DELETE', path, { token }))).toBe('409 conflict')
    const [apiToken] = app.apiTokens.list({ namespace: 'acme--byhand' })
    await app.call('DELETE', `${path}/api-tokens/${apiToken?.metadata.uid ?? ''}`, { token })
    expect(codeOf(await app.call('DELETE', path, { token }))).toBe('200 OK')
    expect(await app.store.get(Namespace, { name: 'acme--byhand' })).toBeUndefined()
  })

  test('with the name of a foreign Namespace are rejected, and leave nothing', async () => {
    await using app = await serveAcme()
    await app.store.create(Namespace, { metadata: { name: 'acme--taken' } })
    const body = { slug: 'taken', name: 'Taken' }
    expect(codeOf(await app.call('POST', '/v1/organizations/acme/namespaces', { token, body }))).toBe('409 conflict')
    expect(codeOf(await app.call('GET', '/v1/organizations/acme/namespaces/taken', { token }))).toBe('404 not_found')
    await expect.poll(() => app.store.get(TenantNamespace, { name: 'acme--taken' })).toBeUndefined()
    expect(await app.store.get(Namespace, { name: 'acme--taken' })).toBeDefined()
  })

  test('and organizations have an ETag on creation that a deletion accepts', async () => {
    await using app = await serveTenancy()
    const organization = await app.call('POST', '/v1/organizations', { token, body: { slug: 'acme', name: 'Acme' } })
    const path = '/v1/organizations/acme/namespaces'
    const namespace = await app.call('POST', path, { token, body: { slug: 'prod', name: 'Production' } })
    const naming = (answer: Answer) => ({ token, headers: { 'if-match': answer.headers.get('etag') ?? '' } })
    expect(codeOf(await app.call('DELETE', `${path}/prod`, naming(namespace)))).toBe('200 OK')
    expect(codeOf(await app.call('DELETE', '/v1/organizations/acme', naming(organization)))).toBe('200 OK')
  })

  test('are deleted while webhooks of deleted tunnels remain, which Kubernetes removes a moment later', async () => {
    await using app = await serveAcme()
    const spec = { tunnelRef: { name: 'gone' }, url: 'https://example.com/' }
    await app.store.create(TunnelWebhook, { metadata: { namespace: 'acme--prod', name: 'w' }, spec })
    const answer = await app.call('DELETE', NAMESPACE, { token })
    expect(answer.body.msg).not.toContain('not empty')
  })

  test('are deleted only when empty', async () => {
    await using app = await serveAcme()
    await app.call('POST', `${NAMESPACE}/api-tokens`, { token, body: { name: 'ci', role: 'viewer' } })
    const refused = await app.call('DELETE', NAMESPACE, { token })
    expect(codeOf(refused)).toBe('409 conflict')
    expect(refused.body.msg).toContain('1 API token')
  })

  test.each([
    { who: 'eve', get: '404 not_found', post: '404 not_found', remove: '404 not_found' },
    { who: 'viewer', get: '200 OK', post: '403 forbidden', remove: '403 forbidden' },
    { who: 'admin', get: '200 OK', post: '403 forbidden', remove: '403 forbidden' },
  ])('answer $who with $get, $post and $remove', async ({ who, get, post, remove }) => {
    await using app = await serveAcme()
    const body = { slug: 'test', name: 'Test' }
    expect(codeOf(await app.call('GET', NAMESPACE, { token: who }))).toBe(get)
    expect(codeOf(await app.call('POST', '/v1/organizations/acme/namespaces', { token: who, body }))).toBe(post)
    expect(codeOf(await app.call('DELETE', NAMESPACE, { token: who }))).toBe(remove)
  })

  test('of an unknown organization, or with a foreign Namespace, are 404', async () => {
    await using app = await serveAcme()
    const body = { slug: 'test', name: 'Test' }
    expect(codeOf(await app.call('POST', '/v1/organizations/nope/namespaces', { token, body }))).toBe('404 not_found')
    for (const path of ['nope/namespaces/prod', 'acme/namespaces/nope', 'acme--prod/namespaces/x', '%2e%2e/namespaces/prod']) {
      expect(codeOf(await app.call('GET', `/v1/organizations/${path}`, { token }))).toBe('404 not_found')
    }
  })
})

describe('members', () => {
  test('get, change and lose a role with immediate effect', async () => {
    await using app = await serveAcme()
    const path = `${NAMESPACE}/members/${encodeURIComponent('corp:Ünï code/x@y')}`
    const put = (role: string) => app.call('PUT', path, { token: 'admin', body: { role } })
    expect(await put('viewer')).toMatchObject({
      status: 201,
      body: { data: { member: { subject: 'corp:Ünï code/x@y', role: 'viewer' } } },
    })
    expect((await put('viewer')).status).toBe(200)
    expect(await put('editor')).toMatchObject({ status: 200, body: { data: { member: { role: 'editor' } } } })
    const listed = await app.call('GET', `${NAMESPACE}/members`, { token: 'viewer' })
    expect(listed.body.data?.members).toContainEqual({ subject: 'corp:Ünï code/x@y', role: 'editor' })
    expect(listed.body.data?.members).toHaveLength(4)
    expect(codeOf(await app.call('DELETE', path, { token: 'admin' }))).toBe('200 OK')
    expect(codeOf(await app.call('DELETE', path, { token: 'admin' }))).toBe('404 not_found')
  })

  test('get one role from two simultaneous requests, also on a change of role', async () => {
    await using app = await serveAcme()
    const put = (role: string) => app.call('PUT', `${NAMESPACE}/members/corp:twin`, { token: 'admin', body: { role } })
    const twice = async (role: string) => (await Promise.all([put(role), put(role)])).map(codeOf).sort()
    expect(await twice('viewer')).toEqual(['200 OK', '201 OK'])
    expect(await twice('editor')).toEqual(['200 OK', '200 OK'])
  })

  test('can be removed, even the last admin, and then get 404', async () => {
    await using app = await serveAcme()
    expect(codeOf(await app.call('DELETE', `${NAMESPACE}/members/local:admin`, { token: 'admin' }))).toBe('200 OK')
    expect(codeOf(await app.call('GET', NAMESPACE, { token: 'admin' }))).toBe('404 not_found')
  })

  test.each([
    { who: 'viewer', list: '200 OK', put: '403 forbidden' },
    { who: 'editor', list: '200 OK', put: '403 forbidden' },
    { who: 'eve', list: '404 not_found', put: '404 not_found' },
  ])('answer $who with $list and $put', async ({ who, list, put }) => {
    await using app = await serveAcme()
    expect(codeOf(await app.call('GET', `${NAMESPACE}/members`, { token: who }))).toBe(list)
    const mine = `${NAMESPACE}/members/local:${who}`
    expect(codeOf(await app.call('PUT', mine, { token: who, body: { role: 'admin' } }))).toBe(put)
    expect(codeOf(await app.call('DELETE', mine, { token: who }))).toBe(put)
  })

  test.each(['system:admin', 'system:serviceaccount:x:y', 'mooring:platform-admins', 'mooring:api-token:1', 'x'.repeat(257)])(
    'may not be called %s',
    async (subject) => {
      await using app = await serveAcme()
      const answer = await app.call('PUT', `${NAMESPACE}/members/${subject}`, { token, body: { role: 'admin' } })
      expect(codeOf(answer)).toBe('400 invalid_request')
      expect(fieldsOf(answer)).toEqual(['subject'])
    },
  )

  test('do not include or change other RoleBindings', async () => {
    await using app = await serveAcme()
    const roleRef = { apiGroup: RoleBinding.group, kind: 'ClusterRole', name: 'mooring-admin' }
    const subjects = [{ kind: 'User' as const, name: 'local:kubectl' }]
    const metadata = { name: 'by-kubectl', namespace: 'acme--prod' }
    await app.store.create(RoleBinding, { metadata, roleRef, subjects })
    const listed = await app.call('GET', `${NAMESPACE}/members`, { token })
    expect(JSON.stringify(listed.body)).not.toContain('kubectl')
    expect(codeOf(await app.call('DELETE', `${NAMESPACE}/members/local:kubectl`, { token }))).toBe('404 not_found')
  })
})
