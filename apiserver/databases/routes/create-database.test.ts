import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FINALIZER } from '../../../crds/names.ts'
import { Plan } from '../../../crds/plan.ts'
import { REGION_ID } from '../../../test/builders/resources.ts'
import { type DatabaseApi, databaseBody, databaseOf, startDatabaseApi } from '../../../test/support/api/database-api.ts'
import { codeOf, fieldsOf } from '../../../test/support/api/http-app.ts'

const keyed = (key: string) => ({ headers: { 'Idempotency-Key': key } })
const rules = (count: number) => Array.from({ length: count }, (_, n) => ({ cidr: `10.0.${n % 256}.0/24` }))

test('a POST answers at once with a database that is being provisioned, without a connection', async () => {
  await using api = await startDatabaseApi()
  const firewallRules = [{ cidr: '203.0.113.0/24', description: 'office' }, { cidr: '::1' }, { cidr: '203.0.113.7' }]
  const body = {
    ...databaseBody,
    organization: 'acme',
    namespace: 'prod',
    firewallRules,
    privateNetwork: true,
    monitoring: false,
  }
  const answer = await api.call('POST /v1/databases', { body })
  expect(codeOf(answer)).toBe('201 OK')
  expect(answer.headers.get('ETag')).toMatch(/^".+"$/)
  expect(databaseOf(answer)).toMatchObject({
    ...{ name: 'shop', organization: 'acme', namespace: 'prod', engine: 'postgresql-15.4.0', region: 'local', plan: 'small' },
    ...{ status: 'provisioning', connection: null, createdBy: 'erin', firewallRules, privateNetwork: true },
  })
  expect(await api.stored()).toMatchObject([
    {
      metadata: { name: 'shop', namespace: 'acme--prod', finalizers: [FINALIZER] },
      spec: { motor: 'postgresql-15.4.0', region: REGION_ID, plan: 'small', firewallRules, privateNetwork: true },
    },
  ])
  expect(api.recorded).toMatchObject([{ action: 'create', principal: { user: 'erin' } }])
})

test('a POST without slugs creates the database in the home namespace of the caller', async () => {
  await using api = await startDatabaseApi()
  expect(await api.created({}, { as: 'olaf' })).toMatchObject({ organization: 'acme', namespace: 'other' })
})

describe('a rejected POST stores nothing', () => {
  let api: DatabaseApi
  beforeAll(async () => {
    api = await startDatabaseApi()
  })
  afterAll(() => api[Symbol.asyncDispose]())

  test.each([
    { does: 'no fields', body: {}, fields: ['name', 'engine', 'region', 'plan'] },
    { does: 'half a namespace', body: { ...databaseBody, organization: 'acme' }, fields: ['namespace'] },
    {
      does: 'half a namespace and no name',
      body: { ...databaseBody, name: 7, namespace: 'prod' },
      fields: ['name', 'organization'],
    },
    { does: 'an unknown field', body: { ...databaseBody, motor: 'x' }, fields: ['motor'] },
    { does: 'a name in upper case', body: { ...databaseBody, name: 'Shop' }, fields: ['name'] },
    { does: 'a long name', body: { ...databaseBody, name: 'x'.repeat(41) }, fields: ['name'] },
    {
      does: 'a slug with an underscore',
      body: { ...databaseBody, organization: 'a_b', namespace: 'prod' },
      fields: ['organization'],
    },
    {
      does: 'invalid rules',
      body: {
        ...databaseBody,
        firewallRules: [
          ...[{ cidr: '::1' }, { cidr: '10.0.0.0/33' }, { cidr: 'here' }, {}, '10.0.0.0/8', { cidr: '::ffff:10.0.0.1' }],
          ...[
            { cidr: '10.0.0.0/8', description: 'a\nb' },
            { cidr: '10.0.0.0/8', note: 'x' },
            { cidr: '' },
            { cidr: '1.2.3.4/0' },
          ],
        ],
      },
      fields: [
        ...[1, 2, 3].map((index) => `firewallRules[${index}].cidr`),
        ...['firewallRules[4]', 'firewallRules[5].cidr', 'firewallRules[6].description', 'firewallRules[7].note'],
        ...['firewallRules[8].cidr', 'firewallRules[9].cidr'],
      ],
    },
    { does: '101 rules', body: { ...databaseBody, firewallRules: rules(101) }, fields: ['firewallRules'] },
    { does: '1,000 rules', body: { ...databaseBody, firewallRules: rules(1_000) }, fields: ['firewallRules'] },
    {
      does: 'add-ons of another form',
      body: {
        ...databaseBody,
        ...{ privateNetwork: 'yes', pointInTimeRecovery: { retentionDays: 36 }, sshTunnel: { authMode: 'none' }, monitoring: 1 },
        restoreFrom: { databaseId: 'x', time: 'yesterday' },
      },
      fields: [
        ...['privateNetwork', 'sshTunnel.authMode', 'monitoring', 'pointInTimeRecovery.retentionDays'],
        ...['restoreFrom.databaseId', 'restoreFrom.time'],
      ],
    },
  ])('with $does is 400 and names each invalid field', async ({ body, fields }) => {
    const answer = await api.call('POST /v1/databases', { body })
    expect(codeOf(answer)).toBe('400 invalid_request')
    expect(fieldsOf(answer)).toEqual(fields)
    expect(await api.stored()).toEqual([])
  })

  test.each([
    { does: 'an unknown region', change: { region: '42' }, code: 'unknown_region', fields: ['region'] },
    { does: 'an engine outside the seven', change: { engine: 'oracle-23' }, code: 'unsupported_motor', fields: ['engine'] },
    { does: 'an engine not run here', change: { engine: 'mysql-8.0.29' }, code: 'unsupported_motor', fields: ['engine'] },
    { does: 'an unknown plan', change: { plan: 'huge' }, code: 'unknown_plan', fields: ['plan'] },
    { does: 'a plan of another engine', change: { plan: 'older' }, code: 'unknown_plan', fields: ['plan'] },
    {
      does: 'point-in-time recovery in an installation without backups',
      change: { pointInTimeRecovery: { retentionDays: 7 } },
      code: 'unsupported_addon',
      fields: ['pointInTimeRecovery'],
    },
    {
      does: 'a restore in an installation without backups',
      change: { restoreFrom: { databaseId: REGION_ID, time: '2026-01-02T03:04:05Z' } },
      code: 'unsupported_addon',
      fields: ['restoreFrom'],
    },
  ])('with $does is 422 $code', async ({ change, code, fields }) => {
    const answer = await api.call('POST /v1/databases', { body: { ...databaseBody, ...change } })
    expect(codeOf(answer)).toBe(`422 ${code}`)
    expect(fieldsOf(answer)).toEqual(fields)
    expect(await api.stored()).toEqual([])
  })
})

test('the error of a rule that is no object shows the form of a rule', async () => {
  await using api = await startDatabaseApi()
  const { body } = await api.call('POST /v1/databases', { body: { ...databaseBody, firewallRules: ['10.0.0.0/8'] } })
  expect(body.msg).toBe('firewallRules[0] must be an object such as {"cidr": "203.0.113.0/24"}')
})

test.each([
  { does: 'point-in-time recovery', change: { pointInTimeRecovery: { retentionDays: 7 } }, field: 'pointInTimeRecovery' },
  {
    does: 'a restore',
    change: { restoreFrom: { databaseId: REGION_ID, time: '2026-01-02T03:04:05Z' } },
    field: 'restoreFrom',
  },
])('a POST with $does for an engine in containers of Docker is 422 with the reason', async ({ change, field }) => {
  const withoutBackups = new Set(['postgresql-15.4.0'] as const)
  await using api = await startDatabaseApi({ restoreGrants: () => 'grant', withoutBackups })
  const answer = await api.call('POST /v1/databases', { body: { ...databaseBody, ...change } })
  expect(codeOf(answer)).toBe('422 unsupported_addon')
  expect(fieldsOf(answer)).toEqual([field])
  expect(answer.body.msg).toContain('servers of postgresql-15.4.0 run in containers of Docker here')
})

test('a POST with monitoring is 422 in an installation without a journal', async () => {
  await using api = await startDatabaseApi()
  const answer = await api.call('POST /v1/databases', { body: { ...databaseBody, monitoring: true } })
  expect([codeOf(answer), fieldsOf(answer)]).toEqual(['422 unsupported_addon', ['monitoring']])
})

test('the error of an unknown plan lists the plans that fit the engine', async () => {
  await using api = await startDatabaseApi()
  const { body } = await api.call('POST /v1/databases', { body: { ...databaseBody, plan: 'huge' } })
  expect(body.msg).toBe('unknown plan: huge; these fit: large, small')
})

test('a POST by a viewer is 403, and one into the namespace of another tenant is 404', async () => {
  await using api = await startDatabaseApi()
  const viewer = await api.call('POST /v1/databases', { as: 'vera', body: databaseBody })
  expect(codeOf(viewer)).toBe('403 forbidden')
  expect(viewer.body.msg).toBe('creating dedicated databases needs the role editor; you are viewer: ask an admin of acme/prod')
  for (const slugs of [
    { organization: 'acme', namespace: 'other' },
    { organization: 'nobody', namespace: 'prod' },
  ]) {
    expect(codeOf(await api.call('POST /v1/databases', { body: { ...databaseBody, ...slugs } }))).toBe('404 not_found')
  }
})

test('a name is unique in a namespace, and stays taken while its database is being deleted', async () => {
  await using api = await startDatabaseApi()
  const post = () => api.call('POST /v1/databases', { body: databaseBody })
  const { id } = await api.created()
  const taken = await post()
  expect(codeOf(taken)).toBe('409 conflict')
  expect([taken.body.msg, fieldsOf(taken)]).toEqual(['this database exists already; choose another name', ['name']])
  expect(await api.created({}, { as: 'olaf' })).toMatchObject({ name: 'shop', namespace: 'other' })
  await api.call(`DELETE /v1/databases/${id}`)
  expect((await post()).body.msg).toBe('the database shop is being deleted; its name is free when it is gone')
  await api.ends(id)
  expect(codeOf(await post())).toBe('201 OK')
})

test('a POST beyond the quota of the namespace is 403, also for simultaneous requests', async () => {
  await using api = await startDatabaseApi({ databasesPerNamespace: 2 })
  const post = (name: string) => api.call('POST /v1/databases', { body: { ...databaseBody, name } })
  const answers = await Promise.all(['a', 'b', 'c', 'd'].map(post))
  expect(answers.map(codeOf).sort()).toEqual(['201 OK', '201 OK', '403 quota_exceeded', '403 quota_exceeded'])
  expect(await api.stored()).toHaveLength(2)
  expect(codeOf(await api.call('POST /v1/databases', { as: 'olaf', body: databaseBody }))).toBe('201 OK')
})

test('an Idempotency-Key returns the same database, rejects another body, and is free once the database is gone', async () => {
  await using api = await startDatabaseApi({ databasesPerNamespace: 1 })
  const post = (more: object = {}) => api.call('POST /v1/databases', { body: { ...databaseBody, ...more }, ...keyed('k') })
  const both = await Promise.all([post(), post()])
  expect(both.map(codeOf)).toEqual(['201 OK', '201 OK'])
  const [first, second] = both.map(databaseOf)
  expect(second).toEqual(first)
  await api.store.delete(Plan, { name: 'small' })
  expect(databaseOf(await post())).toEqual(first)
  expect(api.recorded).toHaveLength(1)
  expect(codeOf(await post({ name: 'other' }))).toBe('422 idempotency_key_reused')
  const id = first?.id ?? ''
  await api.call(`DELETE /v1/databases/${id}`)
  expect(codeOf(await post())).toBe('409 conflict')
  await api.ends(id)
  expect(databaseOf(await post({ plan: 'large' })).id).not.toBe(id)
})
