import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, codeOf, fieldsOf, type Instance } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'

const deployment = openDeployment()
let acme: Tenant
let made: readonly Instance[]
beforeAll(async () => {
  acme = await deployment.namespace()
  made = await Promise.all(['one', 'two', 'one', 'three', 'four'].map((identifier) => acme.instance({ identifier })))
})
afterAll(() => deployment[Symbol.asyncDispose]())

const list = (query: string): Promise<Answer> => expectSuccess(acme.as('viewer')('GET', `/v1/instances${query}`))
const idsOf = (instances: readonly Instance[]) => instances.map(({ id }) => id)

/** Fetches all pages in order. */
async function pages(path: string, limit: number): Promise<readonly Answer[]> {
  const answers: Answer[] = []
  const call = acme.as('viewer')
  let cursor: string | null = ''
  while (cursor !== null) {
    const answer = await expectSuccess(call('GET', `${path}?limit=${limit}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`))
    answers.push(answer)
    cursor = answer.body.data.nextCursor
  }
  return answers
}

describe('GET /v1/instances', () => {
  test('lists all instances of the namespace, newest first, without credentials', async () => {
    const { instances, nextCursor } = (await list('')).body.data
    expect(nextCursor).toBeNull()
    expect(idsOf(instances).toSorted()).toEqual(idsOf(made).toSorted())
    const times = instances.map(({ createdAt }) => createdAt)
    expect(times).toEqual(times.toSorted().reverse())
    for (const instance of instances) {
      expect(instance).toEqual({
        ...made.find(({ id }) => id === instance.id),
        password: null,
        uri: null,
        tls: { required: instance.tls.required, ca: null },
      })
    }
  })

  test.each([1, 2, 3, 5, 200])('lists each instance once in pages of %i', async (limit) => {
    const answers = await pages('/v1/instances', limit)
    expect(answers).toHaveLength(Math.ceil(made.length / limit))
    const found = answers.flatMap(({ body }) => idsOf(body.data.instances))
    expect(found.toSorted()).toEqual(idsOf(made).toSorted())
    expect(found).toEqual(idsOf((await list('')).body.data.instances))
  })

  test('continues after the last page when instances were created or deleted in between', async () => {
    const call = acme.as('editor')
    const first = await list('?limit=2')
    const newer = await acme.instance({ identifier: 'newer' })
    const rest = await list(`?limit=200&cursor=${encodeURIComponent(String(first.body.data.nextCursor))}`)
    const seen = [...idsOf(first.body.data.instances), ...idsOf(rest.body.data.instances)]
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen).toEqual(expect.arrayContaining(idsOf(made)))
    await expectSuccess(call('DELETE', `/v1/instances/${newer.id}`))
  })

  test.each([
    { filter: () => 'identifier=one', names: ['one', 'one'] },
    { filter: () => 'identifier=ONE', names: [] },
    { filter: () => 'identifier=on', names: [] },
    { filter: () => `motor=${deployment.installation.motor}&identifier=two`, names: ['two'] },
    { filter: () => 'motor=mongodb-5.0.9', names: [] },
    { filter: () => `region=${deployment.installation.region.id.toUpperCase()}&identifier=three`, names: ['three'] },
    { filter: () => `region=${crypto.randomUUID()}`, names: [] },
  ])('filters the list down to $names', async ({ filter, names }) => {
    expect((await list(`?${filter()}`)).body.data.instances.map(({ identifier }) => identifier)).toEqual(names)
  })

  test.each([
    { filter: 'region=nowhere', field: 'region', allowed: 'UUID' },
    { filter: 'motor=postgres', field: 'motor', allowed: 'postgresql-15.4.0' },
    { filter: 'motor=PostgreSQL-15.4.0', field: 'motor', allowed: 'postgresql-15.4.0' },
    { filter: 'motor=', field: 'motor', allowed: 'postgresql-15.4.0' },
    { filter: 'identifier=', field: 'identifier', allowed: '1 to 63 letters' },
    { filter: `identifier=${encodeURIComponent("' OR 1=1 --")}`, field: 'identifier', allowed: '1 to 63 letters' },
  ])('rejects $filter, which matches nothing, and names valid values', async ({ filter, field, allowed }) => {
    const answer = await acme.as('viewer')('GET', `/v1/instances?${filter}`)
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', [field]])
    expect(answer.body.msg).toContain(allowed)
  })

  test('lists no instance of another namespace', async () => {
    const other = await deployment.namespace()
    expect((await other.as('admin')('GET', '/v1/instances')).body.data).toEqual({ instances: [], nextCursor: null })
  })

  test('treats the cursor of another namespace as a point in time only', async () => {
    const other = await deployment.namespace()
    const { nextCursor } = (await list('?limit=1')).body.data
    const answer = await other.as('admin')('GET', `/v1/instances?cursor=${encodeURIComponent(String(nextCursor))}`)
    expect(answer.body.data.instances).toEqual([])
  })
})

describe('every other list', () => {
  test.each([
    { plural: 'organizations', path: () => '/v1/organizations' },
    { plural: 'namespaces', path: () => `/v1/organizations/${acme.organization}/namespaces` },
    { plural: 'members', path: () => `${acme.path}/members` },
    { plural: 'apiTokens', path: () => `${acme.path}/api-tokens` },
    { plural: 'regions', path: () => '/v1/regions' },
  ])('returns pages: $plural', async ({ plural, path }) => {
    const { body } = await expectSuccess(acme.as('admin')('GET', `${path()}?limit=1`))
    expect(Object.keys(body.data).sort()).toEqual(['nextCursor', plural].sort())
    expect((await acme.as('admin')('GET', `${path()}?limit=201`)).status).toBe(400)
    expect((await acme.as('admin')('GET', `${path()}?cursor=x`)).status).toBe(400)
  })

  test('lists each member and each API token once across pages', async () => {
    const admin = acme.as('admin')
    for (const name of ['a', 'b', 'c']) {
      await expectSuccess(admin('PUT', `${acme.path}/members/corp:${name}`, { body: { role: 'viewer' } }))
      await expectSuccess(admin('POST', `${acme.path}/api-tokens`, { body: { name, role: 'viewer' } }))
    }
    const members = (await pages(`${acme.path}/members`, 2)).flatMap(({ body }) => body.data.members)
    expect(members.map(({ subject }) => subject).sort()).toEqual(['corp:a', 'corp:b', 'corp:c'])
    const apiTokens = (await pages(`${acme.path}/api-tokens`, 2)).flatMap(({ body }) => body.data.apiTokens)
    expect(apiTokens.map(({ name }) => name).sort()).toEqual(['a', 'b', 'c'])
  })
})

describe('the logs of a tunnel', () => {
  let path: string
  beforeAll(async () => {
    path = `${acme.path}/tunnels/${(await acme.tunnel()).id}`
  })

  test.each([
    { of: 'requests', filter: 'method=get', field: 'method', allowed: 'GET' },
    { of: 'requests', filter: 'reason=offline', field: 'reason', allowed: 'tunnel_offline' },
    { of: 'requests', filter: 'origin=Edge', field: 'origin', allowed: 'edge' },
    { of: 'requests', filter: 'statusClass=5', field: 'statusClass', allowed: '5xx' },
    { of: 'requests', filter: 'status=404&statusClass=5xx', field: 'statusClass', allowed: '4xx' },
    { of: 'connections', filter: 'type=Connect', field: 'type', allowed: 'connect' },
    { of: 'connections', filter: 'include=all', field: 'include', allowed: 'refused' },
    { of: 'stats', filter: 'window=1d', field: 'window', allowed: '24h' },
  ])('reject $of?$filter, which matches nothing, and name valid values', async ({ of, filter, field, allowed }) => {
    const answer = await acme.as('viewer')('GET', `${path}/${of}?${filter}`)
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', [field]])
    expect(answer.body.msg).toContain(allowed)
  })

  test.each(['method=PROPFIND', 'method=GET', 'reason=tunnel_offline', 'status=404&statusClass=4xx'])(
    'accept %s',
    async (filter) => {
      expect((await acme.as('viewer')('GET', `${path}/requests?${filter}`)).status).toBe(200)
    },
  )
})
