import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Call, codeOf, fieldsOf } from '../support/api/answers.ts'
import { freshSlug, openDeployment } from '../support/deployment/deployment.ts'

import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { LATER } from '../support/patience.ts'

/** Entries of the audit log: callers, actions and resources by their names in the API, and no secrets. */

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

/** Returns the entries of the namespace that a query finds, newest first. */
const entriesOf = (query: string, count: number) => entriesAt(acme.as('viewer'), `${acme.path}/audit?${query}`, count)

/** Waits until a list has the expected number of entries: in a cluster they are in the journal some time after the write. */
async function entriesAt(caller: Call, path: string, count: number) {
  return vi.waitFor(async () => {
    const { body } = await expectSuccess(caller('GET', path))
    expect(body.data.entries).toHaveLength(count)
    return { text: JSON.stringify(body), entries: body.data.entries }
  }, LATER)
}

test('the audit log records creation, changes, rotation, reset and deletion of a database, and no password', async () => {
  const instance = await acme.instance({ identifier: 'orders' })
  const { id } = instance
  const editor = (method: string, path = '', body?: object) =>
    expectSuccess(acme.as('editor')(method, `/v1/instances/${id}${path}`, body && { body }))
  await editor('PATCH', '', { identifier: 'shop', isEnabled: false })
  const rotated = (await editor('POST', '/password')).body.data.instance
  await editor('POST', '/reset')
  await editor('DELETE')
  const { entries, text } = await entriesOf(`kind=SharedInstance&id=${id}`, 5)
  expect(entries).toMatchObject([
    { action: 'delete', via: 'rest', resource: { kind: 'SharedInstance', id, name: 'shop' } },
    { action: 'update', changes: [{ path: 'resetVersion', from: 0, to: 1 }] },
    { action: 'update', changes: [{ path: 'passwordVersion', from: 1, to: 2 }] },
    {
      action: 'update',
      changes: [
        { path: 'identifier', from: 'orders', to: 'shop' },
        { path: 'isEnabled', from: true, to: false },
      ],
    },
    { action: 'create', via: 'rest', resource: { id, name: 'orders' } },
  ])
  const created = Object.fromEntries((entries.at(-1)?.changes ?? []).map(({ path, to }) => [path, to]))
  expect(created).toMatchObject({
    identifier: 'orders',
    region: deployment.installation.region.id,
    motor: deployment.installation.motor,
    isEnabled: true,
  })
  for (const { actor } of entries) expect(actor?.name).toContain(':editor-')
  for (const secret of [instance.password, rotated.password]) expect(text).not.toContain(secret)
})

test('the audit log records creation and revocation of an API token, and neither the token nor its hash', async () => {
  const body = { name: 'ci', role: 'viewer' }
  const { apiToken } = (await expectSuccess(acme.as('admin')('POST', `${acme.path}/api-tokens`, { body }))).body.data
  await expectSuccess(acme.as('admin')('DELETE', `${acme.path}/api-tokens/${apiToken.id}`))
  const { entries, text } = await entriesOf(`kind=ApiToken&id=${apiToken.id}`, 2)
  const resource = { kind: 'ApiToken', name: 'ci' }
  expect(entries).toMatchObject([
    { action: 'delete', via: 'rest', resource },
    {
      action: 'create',
      via: 'rest',
      resource,
      changes: [{ path: 'name', from: null, to: 'ci' }, { path: 'role', to: 'viewer' }, {}],
    },
  ])
  for (const { actor } of entries) expect(actor?.name).toContain(':admin-')
  expect(text).not.toContain(apiToken.token)
  expect(text).not.toContain('sha256')
})

test('the audit log finds the entries of a tunnel by id and by hostname, also after its deletion', async () => {
  const { id, hostname } = await acme.tunnel({ httpsOnly: true })
  const path = `${acme.path}/tunnels/${id}`
  await expectSuccess(acme.as('editor')('PATCH', path, { body: { name: 'shop', config: { httpsOnly: false } } }))
  const resource = { kind: 'Tunnel', id, hostname }
  const created = { action: 'create', resource: { ...resource, name: 'web' } }
  const updated = {
    action: 'update',
    resource: { ...resource, name: 'shop' },
    changes: [
      { path: 'name', from: 'web', to: 'shop' },
      { path: 'config.httpsOnly', from: true, to: false },
    ],
  }
  for (const query of [`id=${id}`, `id=${hostname}`, `id=${hostname.toUpperCase()}&kind=Tunnel`])
    expect((await entriesOf(query, 2)).entries).toMatchObject([updated, created])
  const paths = (await entriesOf(`id=${id}&action=create`, 1)).entries[0]?.changes.map((change) => change.path)
  expect(paths).toEqual(expect.arrayContaining(['name', 'regionId', 'config']))
  await expectSuccess(acme.as('editor')('DELETE', path))
  for (const query of [`id=${id}`, `id=${hostname}`])
    expect((await entriesOf(query, 3)).entries).toMatchObject([{ action: 'delete', resource }, updated, created])
})

describe('values of header modifications, which may be secrets,', () => {
  const SECRET = 'Bearer not-for-viewers'
  const config = (value: string) => ({ liveHeaderModifications: [{ name: 'Authorization', value, type: 'request' }] })
  let id: string
  beforeAll(async () => {
    id = (await acme.tunnel(config(SECRET))).id
  })
  const read = async (role: 'viewer' | 'editor' | 'admin', path: string) =>
    (await expectSuccess(acme.as(role)('GET', `${acme.path}/tunnels${path}`))).body.data

  test.each(['editor', 'admin'] as const)('are shown to an %s', async (role) => {
    expect((await read(role, `/${id}`)).tunnel.config).toMatchObject(config(SECRET))
  })

  test('are null to a viewer, wherever the tunnel is shown', async () => {
    const shown = { liveHeaderModifications: [{ name: 'Authorization', value: null, type: 'request' }] }
    expect((await read('viewer', `/${id}`)).tunnel.config).toMatchObject(shown)
    expect((await read('viewer', '')).tunnels.find((tunnel) => tunnel.id === id)?.config).toMatchObject(shown)
    for (const path of ['', `/${id}`, `/${id}/connect`, `/${id}/certificate`, `/${id}/stats`])
      expect(JSON.stringify(await read('viewer', path))).not.toContain(SECRET)
    const explained = await acme.as('viewer')('POST', `${acme.path}/tunnels/${id}/explain`, { body: { sourceIp: '203.0.113.7' } })
    expect(JSON.stringify(explained.body)).not.toContain(SECRET)
  })

  test('are a digest in the audit log, which shows only that a value changed', async () => {
    const patch = (value: string) =>
      expectSuccess(acme.as('editor')('PATCH', `${acme.path}/tunnels/${id}`, { body: { config: config(value) } }))
    await patch(`${SECRET}-2`)
    await patch('')
    await patch(SECRET)
    const { entries, text } = await entriesOf(`id=${id}`, 4)
    expect(text).not.toContain('not-for-viewers')
    const valueOf = (list: unknown) => (list as { value: string }[])[0]?.value
    const [last, , first] = entries.map(({ changes }) => changes[0])
    const digests = [first?.from, first?.to, last?.to].map(valueOf)
    for (const digest of digests) expect(digest).toMatch(/^hmac-sha256:[0-9a-f]{32}$/)
    expect(digests[2]).toBe(digests[0])
    expect(digests[1]).not.toBe(digests[0])
    expect(valueOf(last?.from)).toBe('')
  })
})

test('the audit log records who granted, changed and removed the role of a member', async () => {
  const subject = `local:${freshSlug()}`
  const path = `${acme.path}/members/${encodeURIComponent(subject)}`
  const admin = acme.as('admin')
  for (const role of ['viewer', 'viewer', 'admin']) await expectSuccess(admin('PUT', path, { body: { role } }))
  await expectSuccess(admin('DELETE', path))
  const resource = { kind: 'Member', id: subject, name: subject }
  const { entries } = await entriesOf(`kind=Member&id=${encodeURIComponent(subject)}`, 3)
  expect(entries).toMatchObject([
    { action: 'delete', resource },
    { action: 'update', resource, changes: [{ path: 'role', from: 'viewer', to: 'admin' }] },
    {
      action: 'create',
      resource,
      changes: [
        { path: 'subject', to: subject },
        { path: 'role', from: null, to: 'viewer' },
      ],
    },
  ])
  for (const { actor, via } of entries) expect([via, actor?.name]).toEqual(['rest', expect.stringContaining(':admin-')])
})

test('the audit log records creation and deletion of an organization and its namespaces, and keeps both', async () => {
  const slug = freshSlug()
  const admin = deployment.admin()
  const post = (path: string, body: object) => expectSuccess(admin('POST', path, { body, headers: { 'Idempotency-Key': slug } }))
  for (let times = 0; times < 2; times++) {
    await post('/v1/organizations', { slug, name: 'Zeta' })
    await post(`/v1/organizations/${slug}/namespaces`, { slug: 'dev', name: 'Development' })
  }
  const ofNamespace = await entriesAt(admin, `/v1/organizations/${slug}/namespaces/dev/audit?kind=TenantNamespace`, 1)
  expect(ofNamespace.entries).toMatchObject([{ action: 'create', resource: { kind: 'TenantNamespace', name: `${slug}/dev` } }])
  await expectSuccess(admin('DELETE', `/v1/organizations/${slug}/namespaces/dev`))
  await expectSuccess(admin('DELETE', `/v1/organizations/${slug}`))
  const { entries } = await entriesAt(admin, `/v1/organizations/${slug}/audit`, 4)
  expect(entries.map(({ action, resource }) => `${action} ${resource.kind} ${resource.name}`)).toEqual([
    `delete Organization ${slug}`,
    `delete TenantNamespace ${slug}/dev`,
    `create TenantNamespace ${slug}/dev`,
    `create Organization ${slug}`,
  ])
  for (const { actor } of entries) expect(actor?.name).toMatch(/^local:suite-/)
})

test('only platform admins read the entries of an organization', async () => {
  const path = `/v1/organizations/${acme.organization}/audit`
  expect(codeOf(await acme.as('admin')('GET', path))).toBe('403 forbidden')
  const other = await deployment.namespace()
  expect(codeOf(await other.as('admin')('GET', path))).toBe('404 not_found')
  expect((await deployment.call('GET', path)).status).toBe(200)
})

describe('a filter that can match nothing is 400, and the error names valid values', () => {
  test.each([
    { query: 'kind=tunnel', field: 'kind', allowed: 'Tunnel' },
    { query: 'kind=', field: 'kind', allowed: 'SharedInstance' },
    { query: 'action=deleted', field: 'action', allowed: 'delete' },
    { query: 'action=Read', field: 'action', allowed: 'read' },
    { query: 'id=', field: 'id', allowed: 'at least 1' },
    { query: 'actor=', field: 'actor', allowed: 'at least 1' },
  ])('audit?$query', async ({ query, field, allowed }) => {
    const answer = await acme.as('viewer')('GET', `${acme.path}/audit?${query}`)
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', [field]])
    expect(answer.body.msg).toContain(allowed)
  })
})
