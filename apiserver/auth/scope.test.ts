import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serveTenancy } from '../../test/support/api/tenancy-app.ts'
import type { Principal } from '../http/route.ts'
import type { Question } from '../../store/access.ts'
import { forbiddenMessage } from './scope.ts'

const root = 'root'
const user = (name: string, home?: string): Principal => ({
  user: `local:${name}`,
  groups: [],
  ...(home === undefined ? {} : { home }),
})

/** Namespaces acme/prod and acme/test; `one` is a member of the first, `two` of both. */
async function start() {
  const app = await serveTenancy()
  await app.call('POST', '/v1/organizations', { token: root, body: { slug: 'acme', name: 'Acme' } })
  for (const slug of ['prod', 'test']) {
    await app.call('POST', '/v1/organizations/acme/namespaces', { token: root, body: { slug, name: slug } })
    const members = slug === 'prod' ? ['one', 'two'] : ['two']
    for (const name of members) {
      const path = `/v1/organizations/acme/namespaces/${slug}/members/local:${name}`
      await app.call('PUT', path, { token: root, body: { role: 'viewer' } })
    }
  }
  return app
}

let app: Awaited<ReturnType<typeof start>>
beforeAll(async () => {
  app = await start()
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
})

const prod = { organization: 'acme', slug: 'prod', namespace: 'acme--prod' }
const testing = { organization: 'acme', slug: 'test', namespace: 'acme--test' }

describe('the home namespace', () => {
  test.each([
    { is: 'what the credential names', principal: user('two', 'acme/test'), header: undefined, scope: testing },
    { is: 'what credential and header name', principal: user('two', 'acme/test'), header: 'acme/test', scope: testing },
    { is: 'else what the header names', principal: user('two'), header: 'acme/prod', scope: prod },
    { is: 'else the only one', principal: user('one'), header: undefined, scope: prod },
  ])('is $is', async ({ principal, header, scope }) => {
    expect(await app.scopes.home({ principal, namespaceHeader: header })).toEqual(scope)
  })

  test.each([
    { when: 'the caller has roles in several', principal: user('two'), header: undefined, code: 'namespace_required' },
    { when: 'the caller has no role', principal: user('eve'), header: undefined, code: 'namespace_required' },
    { when: 'the header names one without a role of the caller', principal: user('one'), header: 'acme/test', code: 'not_found' },
    {
      when: 'the credential names one without a role of the caller',
      principal: user('eve', 'acme/prod'),
      header: undefined,
      code: 'not_found',
    },
    {
      when: 'the header contradicts the credential',
      principal: user('two', 'acme/test'),
      header: 'acme/prod',
      code: 'invalid_request',
    },
    { when: 'the header names an unknown one', principal: user('one'), header: 'acme/nope', code: 'not_found' },
    { when: 'the header is an object name', principal: user('one'), header: 'acme--prod', code: 'invalid_request' },
    { when: 'the header is a path', principal: user('one'), header: 'acme/prod/x', code: 'invalid_request' },
    { when: 'the header is empty', principal: user('one'), header: '', code: 'invalid_request' },
  ])('is refused as $code when $when', async ({ principal, header, code }) => {
    await expect(app.scopes.home({ principal, namespaceHeader: header })).rejects.toMatchObject({ code })
  })
})

test('a missing right is forbidden', async () => {
  const namespace = 'acme--prod'
  await app.scopes.require(user('one'), { verb: 'list', resource: 'sharedinstances', namespace })
  await expect(app.scopes.require(user('one'), { verb: 'create', resource: 'sharedinstances', namespace })).rejects.toMatchObject(
    {
      code: 'forbidden',
    },
  )
})

const viewer = { organization: 'acme', namespace: 'prod', role: 'viewer' } as const
const admin = { organization: 'acme', namespace: 'test', role: 'admin' } as const
const namespace = 'acme--prod'

test.each<{ question: Question; own: readonly (typeof viewer | typeof admin)[]; is: string }>([
  {
    question: { verb: 'create', resource: 'sharedinstances', namespace },
    own: [viewer, admin],
    is: 'creating databases needs the role editor; you are viewer: ask an admin of acme/prod',
  },
  {
    question: { verb: 'get', resource: 'secrets', namespace },
    own: [viewer],
    is: 'reading credentials needs the role editor; you are viewer: ask an admin of acme/prod',
  },
  {
    question: { verb: 'create', resource: 'rolebindings', namespace },
    own: [{ ...admin, namespace: 'test' }],
    is: 'giving roles to members needs the role admin; you have no role: ask an admin of acme/prod',
  },
  {
    question: { verb: 'create', resource: 'organizations' },
    own: [viewer, admin],
    is: 'creating organizations needs the role platform admin; you are admin: ask a platform admin',
  },
  {
    question: { verb: 'delete', resource: 'tenantnamespaces' },
    own: [],
    is: 'deleting namespaces needs the role platform admin; you have no role: ask a platform admin',
  },
  {
    question: { verb: 'create', resource: 'secrets', namespace },
    own: [viewer],
    is: 'creating credentials is not part of any role',
  },
])('$is', ({ question, own, is }) => {
  expect(forbiddenMessage(question, own)).toBe(is)
})
