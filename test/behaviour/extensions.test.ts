import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { codeOf, fieldsOf } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { query } from '../support/postgresql/sql.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const { installation } = deployment
const instanceBody = { identifier: 'PR #7', region: installation.region.id, motor: installation.motor }

const install = (id: string, name: unknown, role: 'viewer' | 'editor' = 'editor') =>
  acme.as(role)('POST', `/v1/instances/${id}/extensions`, { body: { name } })

test('POST …/extensions installs a listed extension, and a migration that requires it passes', async () => {
  const instance = await acme.instance()
  await expect(query(instance, 'CREATE EXTENSION citext')).rejects.toMatchObject({
    code: '42501',
    message: expect.stringContaining('POST /v1/instances/{id}/extensions with the body {"name":"citext"}') as string,
  })
  const before = (await expectSuccess(acme.as('viewer')('GET', `/v1/instances/${instance.id}/extensions`))).body.data.extensions
  expect(before.map(({ name }) => name)).toEqual([
    ...['btree_gin', 'btree_gist', 'citext', 'fuzzystrmatch', 'hstore', 'ltree'],
    ...['pg_trgm', 'pgcrypto', 'tablefunc', 'unaccent', 'uuid-ossp'],
  ])
  expect(before.every(({ installed, version }) => !installed && /^\d+\.\d+$/.test(version ?? ''))).toBe(true)

  const { status, body } = await install(instance.id, 'citext')
  expect(status).toBe(201)
  expect(body.data.extensions.filter(({ installed }) => installed).map(({ name }) => name)).toEqual(['citext'])
  await query(instance, `CREATE EXTENSION IF NOT EXISTS citext; CREATE TABLE t (c citext); INSERT INTO t VALUES ('A')`)
  expect(await query(instance, `SELECT c FROM t WHERE c = 'a'`)).toEqual([{ c: 'A' }])
  expect((await install(instance.id, 'citext')).status).toBe(201)
})

test('POST /v1/instances creates a database with extensions, which a reset keeps and a copy has', async () => {
  const instance = await acme.instance({ extensions: ['hstore', 'uuid-ossp', 'hstore'] })
  expect(await query(instance, `SELECT 'a=>1'::hstore -> 'a' AS a, uuid_generate_v4() IS NOT NULL AS b`)).toEqual([
    { a: '1', b: true },
  ])
  const copy = await acme.instance({ template: instance.id })
  expect(await query(copy, `SELECT 'a=>1'::hstore -> 'a' AS a`)).toEqual([{ a: '1' }])
  await expectSuccess(acme.as('editor')('POST', `/v1/instances/${instance.id}/reset`))
  expect(await query(instance, `SELECT 'a=>1'::hstore -> 'a' AS a`)).toEqual([{ a: '1' }])
})

/** Returns the names of the installed extensions by the API. */
const listed = async (id: string): Promise<readonly string[]> =>
  (await expectSuccess(acme.as('viewer')('GET', `/v1/instances/${id}/extensions`))).body.data.extensions
    .filter(({ installed }) => installed)
    .map(({ name }) => name)

test('an extension that its user dropped is installed again, at once by POST and for a migration, and GET shows what is there', async () => {
  const instance = await acme.instance({ extensions: ['citext'] })
  const copy = await acme.instance({ template: instance.id })
  expect(await listed(copy.id)).toEqual(['citext'])
  const drop = () => query(instance, 'DROP SCHEMA public CASCADE; CREATE SCHEMA public')
  await drop()
  expect((await install(instance.id, 'citext')).status).toBe(201)
  expect(await query(instance, `SELECT FROM pg_extension WHERE extname = 'citext'`)).toHaveLength(1)
  await drop()
  await query(copy, 'DROP EXTENSION citext')
  // Waits for the operator, which looks at all databases every 5 s, without a call of the API.
  await query(instance, 'CREATE EXTENSION IF NOT EXISTS citext; CREATE TABLE t (c citext)')
  expect(await listed(instance.id)).toEqual(['citext'])
  await expect.poll(() => listed(copy.id)).toEqual([])
})

test('PUT by identifier creates a database with extensions and adds missing ones', async () => {
  const identifier = `ext-${randomBytes(4).toString('hex')}`
  const put = (extensions: readonly string[]) =>
    acme.as('editor')('PUT', `/v1/instances/by-identifier/${identifier}`, {
      body: { region: instanceBody.region, motor: instanceBody.motor, extensions },
    })
  const first = await expectSuccess(put(['citext']))
  expect(first.status).toBe(201)
  const again = await expectSuccess(put(['citext', 'hstore']))
  expect(again.status).toBe(200)
  expect(await query(again.body.data.instance, `SELECT 'a=>1'::hstore -> 'a' AS a, 'B'::citext = 'b' AS b`)).toEqual([
    { a: '1', b: true },
  ])
  const refused = await put(['dblink'])
  expect(codeOf(refused)).toBe('422 unsupported_extension')
  expect(fieldsOf(refused)).toEqual(['extensions'])
})

test.each(['dblink', 'plpython3u', 'intarray', 'nosuchextension'])(
  '%s is 422, and the error names the allowed extensions',
  async (name) => {
    const { id } = await acme.instance()
    const answer = await install(id, name)
    expect(codeOf(answer)).toBe('422 unsupported_extension')
    expect(answer.body.msg).toContain('must be one of btree_gin, btree_gist, citext')
    const created = await acme.as('editor')('POST', '/v1/instances', {
      body: { ...instanceBody, extensions: ['citext', name] },
    })
    expect(codeOf(created)).toBe('422 unsupported_extension')
    expect(fieldsOf(created)).toEqual(['extensions'])
  },
)

test.each([{ name: 'CITEXT' }, { name: 'a"; DROP TABLE t' }, { name: '' }, { name: 7 }, {}, { name: 'citext', schema: 'x' }])(
  'the invalid body %j is 400',
  async (body) => {
    const { id } = await acme.instance()
    expect(codeOf(await acme.as('editor')('POST', `/v1/instances/${id}/extensions`, { body }))).toBe('400 invalid_request')
  },
)

test('an extension that conflicts with an existing object is 409 with the reason, and none of the request is installed', async () => {
  const instance = await acme.instance()
  await query(instance, 'CREATE TYPE citext AS (n int)')
  const answer = await install(instance.id, 'citext')
  expect(codeOf(answer)).toBe('409 conflict')
  expect(answer.body.msg).toContain('schema public has an object with a name that it needs')
  await query(instance, 'DROP TYPE citext')
  await query(instance, 'SELECT 1')
  expect((await install(instance.id, 'citext')).status).toBe(201)
})

test('a viewer may list extensions but not install them; another tenant finds nothing', async () => {
  const { id } = await acme.instance()
  expect(codeOf(await install(id, 'citext', 'viewer'))).toBe('403 forbidden')
  const other = await deployment.namespace()
  expect((await other.as('editor')('GET', `/v1/instances/${id}/extensions`)).status).toBe(404)
  expect((await other.as('editor')('POST', `/v1/instances/${id}/extensions`, { body: { name: 'citext' } })).status).toBe(404)
})
