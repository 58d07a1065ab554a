import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codeOf, fieldsOf } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { shownInstance } from '../support/api/answer-rules.ts'
import { query } from '../support/postgresql/sql.ts'
import type { Tenant } from '../support/api/tenant.ts'

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const post = (body: unknown) => acme.as('editor')('POST', '/v1/instances', { body })
const ahead = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString()
const MILLISECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const PEM = /^-----BEGIN CERTIFICATE-----\n[\s\S]+-----END CERTIFICATE-----\n$/
const text = expect.stringMatching(/./) as string

describe('POST /v1/instances', () => {
  test('returns a working database with every documented field', async () => {
    const { status, body } = await post(deployment.instanceBody())
    expect(status).toBe(201)
    const { instance } = body.data
    expect(body).toEqual({
      msg: 'OK',
      data: {
        instance: {
          ...shownInstance(deployment.installation, { identifier: 'PR #7' }),
          password: expect.stringMatching(/^[0-9A-Za-z]{24}$/) as string,
          uri: expect.stringMatching(/^postgresql:\/\//) as string,
          tls: { required: instance.tls.required, ca: expect.stringMatching(PEM) as string },
        },
      },
    })
    expect(await query(instance, 'SELECT current_database() AS name, current_user::text AS user')).toEqual([
      { name: instance.name, user: instance.user },
    ])
  })

  test('returns a uri that agrees with the other fields', async () => {
    const { uri, host, port, user, password, name } = await acme.instance()
    const url = new URL(uri)
    expect([url.hostname, Number(url.port), url.username, url.password, url.pathname]).toEqual([
      host,
      port,
      user,
      password,
      `/${name}`,
    ])
  })

  test.each([
    { identifier: 'PR #7', stem: 'pr7' },
    { identifier: 'a', stem: 'a' },
    { identifier: '7-up', stem: 'd7up' },
    { identifier: 'Feature/Payment_Provider-2', stem: 'featurepayme' },
    { identifier: `x${'+'.repeat(62)}`, stem: 'x' },
  ])('derives the names of database and user from $identifier', async ({ identifier, stem }) => {
    const { name, user } = await acme.instance({ identifier })
    expect(name).toMatch(new RegExp(`^${stem}[a-z2-7]{10}$`))
    expect(user).toBe(name)
  })

  test('creates a new database each time, also for a repeated identifier', async () => {
    const [one, other] = [await acme.instance(), await acme.instance()]
    expect(one.id).not.toBe(other.id)
    expect(one.name).not.toBe(other.name)
    expect(one.password).not.toBe(other.password)
  })

  test.each([
    { what: 'without an identifier', body: { identifier: undefined }, fields: ['identifier'] },
    { what: 'without a motor', body: { motor: undefined }, fields: ['motor'] },
    { what: 'without a region', body: { region: undefined }, fields: ['region'] },
    { what: 'with an unknown field', body: { engine: 'x' }, fields: ['engine'] },
    { what: 'with ttl and expiresAt', body: { ttl: 60, expiresAt: '2030-01-01T00:00:00Z' }, fields: ['expiresAt'] },
    { what: 'with a ttl of 59', body: { ttl: 59 }, fields: ['ttl'] },
    { what: 'with a ttl of 30 days and a second', body: { ttl: 2_592_001 }, fields: ['ttl'] },
    { what: 'with a string as ttl', body: { ttl: '3600' }, fields: ['ttl'] },
    { what: 'with a fraction as ttl', body: { ttl: 60.5 }, fields: ['ttl'] },
    { what: 'with expiresAt in the past', body: { expiresAt: '2020-01-01T00:00:00Z' }, fields: ['expiresAt'] },
    { what: 'with expiresAt past 30 days', body: { expiresAt: '2120-01-01T00:00:00Z' }, fields: ['expiresAt'] },
    { what: 'with an expiresAt that is not a time', body: { expiresAt: 'tomorrow' }, fields: ['expiresAt'] },
    { what: 'with an unknown template', body: { template: crypto.randomUUID() }, fields: ['template'] },
  ])('$what is 400', async ({ body, fields }) => {
    const answer = await post(deployment.instanceBody(body))
    expect(codeOf(answer)).toBe('400 invalid_request')
    expect(fieldsOf(answer)).toEqual(fields)
  })

  test.each([
    { what: 'quotes', identifier: `it's` },
    { what: 'double quotes', identifier: `a"b` },
    { what: 'a NUL', identifier: 'a\u0000b' },
    { what: 'a line break', identifier: 'a\nb' },
    { what: 'an emoji', identifier: 'ship 🚢' },
    { what: 'an umlaut', identifier: 'Jörg' },
    { what: '64 characters', identifier: 'x'.repeat(64) },
    { what: 'nothing', identifier: '' },
    { what: 'a blank first', identifier: ' a' },
    { what: 'SQL', identifier: `x'; DROP DATABASE postgres; --` },
    { what: 'a backslash', identifier: 'a\\b' },
    { what: 'a number', identifier: 7 },
    { what: 'a list', identifier: ['a'] },
    { what: 'null', identifier: null },
  ])('an identifier of $what is 400', async ({ identifier }) => {
    const answer = await post(deployment.instanceBody({ identifier }))
    expect(codeOf(answer)).toBe('400 invalid_request')
    expect(fieldsOf(answer)).toEqual(['identifier'])
  })

  test.each([
    { what: 'an unknown region', body: { region: crypto.randomUUID() }, is: '422 unknown_region', field: 'region' },
    { what: 'a region that is not an id', body: { region: '42' }, is: '422 unknown_region', field: 'region' },
    { what: 'an unknown motor', body: { motor: 'oracle-23' }, is: '422 unsupported_motor', field: 'motor' },
    { what: 'an incomplete version of a motor', body: { motor: 'postgresql-15' }, is: '422 unsupported_motor', field: 'motor' },
  ])('$what is $is, with the reason', async ({ body, is, field }) => {
    const answer = await post(deployment.instanceBody(body))
    expect(codeOf(answer)).toBe(is)
    expect(answer.body.error.details).toEqual([{ field, message: text }])
    expect(answer.body.msg).toContain(Object.values(body)[0])
  })

  test('creates nothing for a rejected request', async () => {
    const identifier = 'never-made'
    await post(deployment.instanceBody({ identifier, motor: 'oracle-23' }))
    await post(deployment.instanceBody({ identifier, template: crypto.randomUUID() }))
    const list = await acme.as('viewer')('GET', `/v1/instances?identifier=${identifier}`)
    expect(list.body.data.instances).toEqual([])
  })

  test('accepts a ttl and returns the resulting expiry time', async () => {
    const before = Date.now()
    const { expiresAt } = await acme.instance({ ttl: 3_600 })
    expect(expiresAt).toMatch(MILLISECONDS)
    const life = Date.parse(expiresAt ?? '') - before
    expect(life).toBeGreaterThanOrEqual(3_600_000)
    expect(life).toBeLessThanOrEqual(3_600_000 + Date.now() - before)
  })

  test('accepts expiresAt in any time zone and returns it in UTC', async () => {
    const at = ahead(7_200)
    const zoned = `${new Date(Date.parse(at) + 3_600_000).toISOString().slice(0, -1)}+01:00`
    expect((await acme.instance({ expiresAt: zoned })).expiresAt).toBe(at)
  })

  test('copies a template into an independent database', async () => {
    const source = await acme.instance({ identifier: 'seed' })
    await query(source, 'CREATE TABLE t AS SELECT 1 AS i')
    const copy = await acme.instance({ identifier: 'copy', template: source.id })
    expect(await query(copy, 'SELECT i FROM t')).toEqual([{ i: 1 }])
    await query(copy, 'DROP TABLE t')
    expect(await query(source, 'SELECT i FROM t')).toEqual([{ i: 1 }])
  })
})

test('a database accepts logins without TLS only on loopback, and TLS logins verified by the returned CA everywhere', async () => {
  const instance = await acme.instance()
  const withTls = { ...instance, tls: { ...instance.tls, required: true } }
  expect(await query(withTls, 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')).toEqual([{ ssl: true }])
  expect(instance.tls.required).toBe(!/^(127\.|::1$|localhost$)/.test(instance.host))
  expect(new URL(instance.uri).searchParams.get('sslmode')).toBe(instance.tls.required ? 'verify-full' : null)
  const plain = query({ ...instance, tls: { required: false, ca: null } }, 'SELECT 1 AS one')
  if (instance.tls.required) await expect(plain).rejects.toMatchObject({ code: '28000' })
  else expect(await plain).toEqual([{ one: 1 }])
})
