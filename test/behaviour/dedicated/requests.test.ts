import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { codeOf, type Database, fieldsOf } from '../../support/api/answers.ts'
import { createDatabase, databasePath, dedicated, untilGone, untilRunning } from '../../support/api/databases.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { LATER } from '../../support/patience.ts'

/** Requests about dedicated databases: what is rejected, who may do what, and what the audit log has of it. */

const deployment = openDeployment()
let acme: Tenant
let other: Tenant
/** Smallest plan with more storage than `small`. */
let larger: string
/** Database that runs, with the plan `larger`. */
let shop: Database
const bodyOf = (tenant: Tenant, more: object = {}) => ({
  ...{ name: 'shop', organization: tenant.organization, namespace: tenant.namespace, plan: larger },
  ...{ engine: deployment.installation.motor, region: deployment.installation.region.id },
  ...more,
})
beforeAll(async () => {
  acme = await deployment.namespace()
  other = await deployment.namespace()
  larger = await largerPlan()
  shop = await untilRunning(acme.as('editor'), await createDatabase(acme.as('editor'), bodyOf(acme)))
})
afterAll(() => deployment[Symbol.asyncDispose]())

async function largerPlan(): Promise<string> {
  const { metadata } = (await expectSuccess(deployment.call('GET', '/v1/databases/create/metadata', { on: 'dedicated' }))).body
    .data
  const small = metadata.plans.find(({ id }) => id === 'small') ?? expect.fail('there is no plan small')
  const all = metadata.plans.filter(({ storageGiB }) => storageGiB > small.storageGiB)
  return all.toSorted((a, b) => a.memoryMiB - b.memoryMiB)[0]?.id ?? expect.fail('no plan has more storage than small')
}

const as = (role: 'viewer' | 'editor', tenant = acme) => dedicated(tenant.as(role))
const rules = (count: number) => Array.from({ length: count }, (_, n) => ({ cidr: `10.${n % 250}.0.0/16` }))
const UNKNOWN = '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a99'

describe('a POST leaves nothing', () => {
  test.each([
    { does: 'an unknown region', change: { region: UNKNOWN }, code: '422 unknown_region', fields: ['region'] },
    { does: 'an engine of no region', change: { engine: 'oracle-23' }, code: '422 unsupported_motor', fields: ['engine'] },
    { does: 'an unknown plan', change: { plan: 'galactic' }, code: '422 unknown_plan', fields: ['plan'] },
    {
      does: 'an incomplete SSH key',
      change: { sshTunnel: { authorizedKeys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAA'] } },
      ...{ code: '400 invalid_request', fields: ['sshTunnel.authorizedKeys[0]'] },
    },
    { does: 'monitoring', change: { monitoring: 'yes' }, code: '400 invalid_request', fields: ['monitoring'] },
    {
      does: 'a restore of an unknown database',
      change: { restoreFrom: { databaseId: UNKNOWN, time: '2030-01-31T12:00:00Z' } },
      ...{ code: '422 unknown_database', fields: ['restoreFrom.databaseId'] },
    },
    { does: 'a name in capitals', change: { name: 'Shop' }, code: '400 invalid_request', fields: ['name'] },
    { does: 'an unknown field', change: { size: 1 }, code: '400 invalid_request', fields: ['size'] },
    {
      does: 'an invalid rule',
      change: { firewallRules: [...rules(3), { cidr: '10.0.0.0/64' }] },
      ...{ code: '400 invalid_request', fields: ['firewallRules[3].cidr'] },
    },
    { does: '1,000 rules', change: { firewallRules: rules(1_000) }, code: '400 invalid_request', fields: ['firewallRules'] },
    { does: 'a namespace of nobody', change: { namespace: 'none' }, code: '404 not_found', fields: [] },
    { does: 'a name that is taken', change: { name: 'shop' }, code: '409 conflict', fields: ['name'] },
  ])('with $does: $code', async ({ change, code, fields }) => {
    const answer = await as('editor')('POST', '/v1/databases', { body: bodyOf(acme, { name: 'new', ...change }) })
    expect([codeOf(answer), fieldsOf(answer)]).toEqual([code, fields])
    expect((await expectSuccess(as('viewer')('GET', '/v1/databases'))).body.data.databases).toHaveLength(1)
  })
})

test.each([
  { does: 'a plan with less storage', body: { plan: 'small' }, code: '422 plan_too_small', fields: ['plan'] },
  { does: 'an unknown plan', body: { plan: 'galactic' }, code: '422 unknown_plan', fields: ['plan'] },
  { does: 'monitoring', body: { monitoring: 1 }, code: '400 invalid_request', fields: ['monitoring'] },
  { does: 'another engine', body: { engine: 'mysql-8.0.29' }, code: '400 invalid_request', fields: ['engine'] },
])('a PATCH to $does is $code and changes nothing', async ({ body, code, fields }) => {
  const answer = await as('editor')('PATCH', databasePath(shop), { body })
  expect([codeOf(answer), fieldsOf(answer)]).toEqual([code, fields])
  expect((await expectSuccess(as('editor')('GET', databasePath(shop)))).body.data.database).toEqual(shop)
})

test('a firewall change is a merge patch, and the database runs on', async () => {
  const patch = async (body: object) => {
    const { database } = (await expectSuccess(as('editor')('PATCH', databasePath(shop), { body }))).body.data
    return { patched: database, running: await untilRunning(as('editor'), shop) }
  }
  const firewallRules = [{ cidr: '127.0.0.0/8', description: 'this machine' }, { cidr: '127.0.0.1' }, { cidr: '::1' }]
  expect((await patch({ firewallRules })).running).toMatchObject({ firewallRules, privateNetwork: false })
  expect((await patch({ firewallRules: [] })).running).toMatchObject({ firewallRules: [] })
  expect((await patch({ firewallRules: null })).running).toEqual(shop)
})

test('a viewer sees no connection and changes nothing, and another tenant sees nothing', async () => {
  expect((await expectSuccess(as('viewer')('GET', databasePath(shop)))).body.data.database).toEqual({ ...shop, connection: null })
  const calls = [
    { method: 'PATCH', path: databasePath(shop), body: { privateNetwork: true } },
    { method: 'DELETE', path: databasePath(shop), body: undefined },
    { method: 'POST', path: `${databasePath(shop)}/password`, body: undefined },
  ]
  for (const { method, path, body } of calls) {
    expect(codeOf(await as('viewer')(method, path, { body }))).toBe('403 forbidden')
    expect(codeOf(await as('editor', other)(method, path, { body }))).toBe('404 not_found')
  }
  expect(codeOf(await as('editor', other)('GET', databasePath(shop)))).toBe('404 not_found')
  expect(codeOf(await as('viewer')('POST', '/v1/databases', { body: bodyOf(acme, { name: 'new' }) }))).toBe('403 forbidden')
  expect(codeOf(await as('editor', other)('POST', '/v1/databases', { body: bodyOf(acme, { name: 'new' }) }))).toBe(
    '404 not_found',
  )
  expect((await expectSuccess(as('editor', other)('GET', '/v1/databases'))).body.data.databases).toEqual([])
})

test('a list has the databases of all namespaces of the caller, without connections', async () => {
  const { databases } = (await expectSuccess(as('viewer')('GET', '/v1/databases'))).body.data
  expect(databases).toEqual([{ ...shop, connection: null }])
  const all = await expectSuccess(dedicated(deployment.admin())('GET', `/v1/databases?organization=${acme.organization}`))
  expect(all.body.data.databases).toEqual(databases)
  expect(codeOf(await as('viewer')('GET', '/v1/databases?color=blue'))).toBe('400 invalid_request')
})

test('an API token works on the dedicated listener, and creates in its own namespace by default', async () => {
  const admin = other.as('admin')
  const { apiToken } = (await expectSuccess(admin('POST', `${other.path}/api-tokens`, { body: { name: 'ci', role: 'editor' } })))
    .body.data
  const { token } = apiToken
  const { organization, namespace, ...body } = bodyOf(other, { plan: 'small' })
  const headers = { 'Idempotency-Key': crypto.randomUUID() }
  const made = await createDatabase(deployment.call, body, { token, headers })
  expect(made).toMatchObject({ organization, namespace, connection: null })
  expect((await createDatabase(deployment.call, body, { token, headers })).id).toBe(made.id)
  const changed = await dedicated(deployment.call)('POST', '/v1/databases', { token, headers, body: { ...body, plan: larger } })
  expect(codeOf(changed)).toBe('422 idempotency_key_reused')
  for (let time = 1; time <= 2; time++) {
    expect(['202 OK', '404 not_found']).toContain(
      codeOf(await dedicated(deployment.call)('DELETE', databasePath(made), { token })),
    )
  }
  await untilGone(other.as('viewer'), made)
})

test('the audit log records creation, changes and reads of the connection, and no password', async () => {
  const path = `${acme.path}/audit?kind=DedicatedDatabase&id=${shop.id}&limit=200`
  const { entries, text } = await vi.waitFor(async () => {
    const { body } = await expectSuccess(acme.as('viewer')('GET', path))
    expect(body.data.entries.map(({ action }) => action)).toEqual(expect.arrayContaining(['create', 'update', 'read']))
    return { entries: body.data.entries, text: JSON.stringify(body) }
  }, LATER)
  const created = entries.at(-1)
  expect(created).toMatchObject({ action: 'create', via: 'rest', resource: { id: shop.id, name: 'shop' } })
  const fields = Object.fromEntries((created?.changes ?? []).map(({ path, to }) => [path, to]))
  expect(fields).toMatchObject({ name: 'shop', engine: shop.engine, plan: larger })
  expect(text).not.toContain(shop.connection?.password)
})

test('a namespace with a dedicated database is not deleted', async () => {
  const answer = await deployment.call('DELETE', acme.path)
  expect([codeOf(answer), answer.body.msg]).toEqual(['409 conflict', expect.stringContaining('1 dedicated database') as string])
})
