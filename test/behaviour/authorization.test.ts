import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codeOf, type Instance } from '../support/api/answers.ts'
import { freshSlug, openDeployment } from '../support/deployment/deployment.ts'
import type { Call } from '../support/api/answers.ts'
import { type Role, expectSuccess, type Tenant } from '../support/api/tenant.ts'

const deployment = openDeployment()
let acme: Tenant
let instance: Instance
let callers: Readonly<Record<Role, Call>>
beforeAll(async () => {
  acme = await deployment.namespace()
  callers = { viewer: acme.as('viewer'), editor: acme.as('editor'), admin: acme.as('admin') }
  instance = await acme.instance()
})
afterAll(() => deployment[Symbol.asyncDispose]())

interface Deed {
  readonly does: string
  /** Weakest role that is authorized. */
  readonly needs: Role | 'platform-admin'
  readonly method: string
  readonly path: (at: { acme: Tenant; id: string }) => string
  readonly body?: () => unknown
}

const subject = () => encodeURIComponent(`corp:${freshSlug()}`)
const DEEDS: readonly Deed[] = [
  { does: 'list instances', needs: 'viewer', method: 'GET', path: () => '/v1/instances' },
  { does: 'read an instance', needs: 'viewer', method: 'GET', path: ({ id }) => `/v1/instances/${id}` },
  { does: 'read the namespace', needs: 'viewer', method: 'GET', path: ({ acme: { path } }) => path },
  { does: 'list members', needs: 'viewer', method: 'GET', path: ({ acme: { path } }) => `${path}/members` },
  { does: 'list API tokens', needs: 'viewer', method: 'GET', path: ({ acme: { path } }) => `${path}/api-tokens` },
  {
    does: 'read the organization',
    needs: 'viewer',
    method: 'GET',
    path: ({ acme: { organization } }) => `/v1/organizations/${organization}`,
  },
  {
    does: 'create an instance',
    needs: 'editor',
    method: 'POST',
    path: () => '/v1/instances',
    body: () => deployment.instanceBody(),
  },
  {
    does: 'change an instance',
    needs: 'editor',
    method: 'PATCH',
    path: ({ id }) => `/v1/instances/${id}`,
    body: () => ({ identifier: 'x' }),
  },
  { does: 'rotate a password', needs: 'editor', method: 'POST', path: ({ id }) => `/v1/instances/${id}/password` },
  { does: 'reset an instance', needs: 'editor', method: 'POST', path: ({ id }) => `/v1/instances/${id}/reset` },
  {
    does: 'add a member',
    needs: 'admin',
    method: 'PUT',
    path: ({ acme: { path } }) => `${path}/members/${subject()}`,
    body: () => ({ role: 'viewer' }),
  },
  {
    does: 'create an API token',
    needs: 'admin',
    method: 'POST',
    path: ({ acme: { path } }) => `${path}/api-tokens`,
    body: () => ({ name: 'x', role: 'viewer' }),
  },
  {
    does: 'create an organization',
    needs: 'platform-admin',
    method: 'POST',
    path: () => '/v1/organizations',
    body: () => ({ slug: freshSlug(), name: 'x' }),
  },
  {
    does: 'create a namespace',
    needs: 'platform-admin',
    method: 'POST',
    path: ({ acme: { organization } }) => `/v1/organizations/${organization}/namespaces`,
    body: () => ({ slug: freshSlug(), name: 'x' }),
  },
  { does: 'delete the namespace', needs: 'platform-admin', method: 'DELETE', path: ({ acme: { path } }) => path },
  {
    does: 'delete the organization',
    needs: 'platform-admin',
    method: 'DELETE',
    path: ({ acme: { organization } }) => `/v1/organizations/${organization}`,
  },
]
const RANK = ['viewer', 'editor', 'admin', 'platform-admin'] as const
const ROLES = ['viewer', 'editor', 'admin'] as const

const cases = ROLES.flatMap((role) =>
  DEEDS.map((deed) => ({ ...deed, role, may: RANK.indexOf(role) >= RANK.indexOf(deed.needs) ? 'may' : 'may not' })),
)

test.each(cases)('a caller with role $role $may $does', async ({ role, may, needs, method, path, body }) => {
  const answer = await callers[role](method, path({ acme, id: instance.id }), { body: body?.() })
  if (may === 'may') expect([200, 201]).toContain(answer.status)
  else {
    expect(codeOf(answer)).toBe('403 forbidden')
    expect(answer.body.msg).toContain(`needs the role ${needs.replace('-', ' ')}; you are ${role}: ask `)
  }
})

describe('a viewer', () => {
  test('sees no password in any answer with an instance', async () => {
    const one = (await callers.viewer('GET', `/v1/instances/${instance.id}`)).body
    const all = (await callers.viewer('GET', '/v1/instances')).body
    for (const body of [one, all])
      expect(JSON.stringify(body)).not.toMatch(/postgresql:\/\/|BEGIN CERTIFICATE|moor_[0-9A-Za-z]{46}/)
  })

  test('deletes nothing', async () => {
    expect(codeOf(await callers.viewer('DELETE', `/v1/instances/${instance.id}`))).toBe('403 forbidden')
    expect((await callers.viewer('GET', `/v1/instances/${instance.id}`)).status).toBe(200)
  })
})

test('an editor deletes an instance of another editor', async () => {
  const { id } = await acme.instance()
  expect((await callers.editor('DELETE', `/v1/instances/${id}`)).status).toBe(200)
})

test('an admin of one namespace has no role in another namespace of the same organization', async () => {
  const slug = freshSlug()
  const path = `/v1/organizations/${acme.organization}/namespaces`
  await expectSuccess(deployment.call('POST', path, { body: { slug, name: 'Staging' } }))
  for (const below of ['', '/members', '/api-tokens']) {
    expect(codeOf(await callers.admin('GET', `${path}/${slug}${below}`))).toBe('404 not_found')
  }
  expect((await callers.admin('GET', path)).body.data.namespaces.map((namespace) => namespace.slug)).toEqual([acme.namespace])
  await expectSuccess(deployment.call('DELETE', `${path}/${slug}`))
})
