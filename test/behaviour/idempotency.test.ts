import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codeOf } from '../support/api/answers.ts'
import { freshSlug, openDeployment } from '../support/deployment/deployment.ts'
import type { Call } from '../support/api/answers.ts'
import { query } from '../support/postgresql/sql.ts'
import { regionId, expectSuccess, type Tenant } from '../support/api/tenant.ts'

const deployment = openDeployment()
let acme: Tenant
let region: number
beforeAll(async () => {
  acme = await deployment.namespace()
  region = await regionId(deployment.call)
})
afterAll(() => deployment[Symbol.asyncDispose]())

const withKey = (key = crypto.randomUUID()) => ({ 'Idempotency-Key': key })

interface Creation {
  readonly what: string
  /** Caller that creates the resource. */
  readonly caller: () => Call
  readonly path: () => string
  readonly body: () => Readonly<Record<string, unknown>>
  readonly other: object
  /** Path of the created resource, from the data of the answer. */
  readonly made: (data: Awaited<ReturnType<Call>>['body']['data']) => string
}

const CREATIONS: readonly Creation[] = [
  {
    what: 'an instance',
    caller: () => acme.as('editor'),
    path: () => '/v1/instances',
    body: () => deployment.instanceBody({ ttl: 600 }),
    other: { identifier: 'another' },
    made: ({ instance }) => `/v1/instances/${instance.id}`,
  },
  {
    what: 'an organization',
    caller: () => deployment.admin(),
    path: () => '/v1/organizations',
    body: () => ({ slug: freshSlug(), name: 'x' }),
    other: { name: 'another' },
    made: ({ organization }) => `/v1/organizations/${organization.slug}`,
  },
  {
    what: 'a namespace',
    caller: () => deployment.admin(),
    path: () => `/v1/organizations/${acme.organization}/namespaces`,
    body: () => ({ slug: freshSlug(), name: 'x' }),
    other: { name: 'another' },
    made: ({ namespace }) => `/v1/organizations/${acme.organization}/namespaces/${namespace.slug}`,
  },
  {
    what: 'an API token',
    caller: () => acme.as('admin'),
    path: () => `${acme.path}/api-tokens`,
    body: () => ({ name: 'x', role: 'viewer' }),
    other: { name: 'another' },
    made: ({ apiToken }) => `${acme.path}/api-tokens/${apiToken.id}`,
  },
  {
    what: 'a tunnel',
    caller: () => acme.as('editor'),
    path: () => `${acme.path}/tunnels`,
    body: () => ({ name: 'x', regionId: region }),
    other: { name: 'another' },
    made: ({ tunnel }) => `${acme.path}/tunnels/${tunnel.id}`,
  },
]

describe.each(CREATIONS)('a POST of $what with an Idempotency-Key', ({ caller, path, body, other, made }) => {
  test('returns the same answer when repeated, secrets included, and creates nothing more', async () => {
    const [call, instanceBody, headers] = [caller(), body(), withKey()]
    const first = await call('POST', path(), { body: instanceBody, headers })
    const again = await call('POST', path(), { body: instanceBody, headers })
    expect([first.status, again.status]).toEqual([201, 201])
    expect(again.body).toEqual(first.body)
    await expectSuccess(call('DELETE', made(first.body.data)))
    expect(codeOf(await call('DELETE', made(first.body.data)))).toBe('404 not_found')
  })

  test('ignores the order of the fields', async () => {
    const [call, instanceBody, headers] = [caller(), body(), withKey()]
    const first = await expectSuccess(call('POST', path(), { body: instanceBody, headers }))
    const turned = Object.fromEntries(Object.entries(instanceBody).reverse())
    expect((await call('POST', path(), { body: turned, headers })).body).toEqual(first.body)
    await expectSuccess(call('DELETE', made(first.body.data)))
  })

  test('is 422 when repeated with another body', async () => {
    const [call, instanceBody, headers] = [caller(), body(), withKey()]
    const first = await expectSuccess(call('POST', path(), { body: instanceBody, headers }))
    expect(codeOf(await call('POST', path(), { body: { ...instanceBody, ...other }, headers }))).toBe(
      '422 idempotency_key_reused',
    )
    await expectSuccess(call('DELETE', made(first.body.data)))
  })

  test('creates one resource when sent five times at once', async () => {
    const [call, instanceBody, headers] = [caller(), body(), withKey()]
    const answers = await Promise.all(Array.from({ length: 5 }, () => call('POST', path(), { body: instanceBody, headers })))
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201])
    for (const { body: each } of answers) expect(each).toEqual(answers[0]?.body)
    await expectSuccess(call('DELETE', made((await call('POST', path(), { body: instanceBody, headers })).body.data)))
  })

  test('creates a new resource after the first one is deleted', async () => {
    const [call, instanceBody, headers] = [caller(), body(), withKey()]
    const first = await expectSuccess(call('POST', path(), { body: instanceBody, headers }))
    await expectSuccess(call('DELETE', made(first.body.data)))
    const anew = await expectSuccess(call('POST', path(), { body: { ...instanceBody, ...other }, headers }))
    expect(anew.status).toBe(201)
    await expectSuccess(call('DELETE', made(anew.body.data)))
  })

  test.each(['a b', 'ä', '', 'x'.repeat(256)])('is 400 with key %j', async (key) => {
    expect(codeOf(await caller()('POST', path(), { body: body(), headers: { 'Idempotency-Key': key } }))).toBe(
      '400 invalid_request',
    )
  })
})

test.each([42, 0, -1, 9_999_999_999])('a repeated key of a tunnel with unknown region %d is 422', async (regionId) => {
  const [editor, headers] = [acme.as('editor'), withKey()]
  const post = (body: object) => editor('POST', `${acme.path}/tunnels`, { body: { name: 'x', ...body }, headers })
  await expectSuccess(post({ regionId: region }))
  expect(codeOf(await post({ regionId }))).toBe('422 idempotency_key_reused')
})

test('each caller and each namespace has its own keys', async () => {
  const other = await deployment.namespace()
  const headers = withKey()
  const post = async (call: Call) =>
    (await expectSuccess(call('POST', '/v1/instances', { body: deployment.instanceBody(), headers }))).body.data.instance
  const ids = [await post(acme.as('editor')), await post(acme.as('editor')), await post(other.as('editor'))].map(({ id }) => id)
  expect(new Set(ids).size).toBe(3)
})

test('a repeated answer has the current password, also after a rotation', async () => {
  const editor = acme.as('editor')
  const headers = withKey()
  const create = async () =>
    (await expectSuccess(editor('POST', '/v1/instances', { body: deployment.instanceBody(), headers }))).body.data.instance
  const { id } = await create()
  await expectSuccess(editor('POST', `/v1/instances/${id}/password`))
  expect(await query(await create(), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
})
