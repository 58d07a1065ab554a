import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { codeOf, type Instance } from '../../support/api/answers.ts'
import { shownInstance } from '../../support/api/answer-rules.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { motorsUnderTest } from '../../support/families/motors-under-test.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { openSession, versionByUri } from '../../support/families/family-session.ts'
import { patient } from '../../support/patience.ts'

/** Life of a database of each motor, from outside. What the API promises of every database is tested with PostgreSQL in the files above. */

const deployment = openDeployment()
const MOTORS = motorsUnderTest()
/** Instances that expire while the other tests run, by motor. */
const expiring = new Map<string, Instance>()
let first: Tenant
beforeAll(async () => {
  first = await deployment.namespace()
  for (const motor of MOTORS) expiring.set(motor, await first.instance({ motor, ttl: 60 }))
})
afterAll(() => deployment[Symbol.asyncDispose]())

const pathOf = ({ id }: Instance): string => `/v1/instances/${id}`

describe.each(MOTORS)('a database of %s', (motor) => {
  let acme: Tenant
  beforeAll(async () => {
    acme = await deployment.namespace()
  })
  const client = clientOf(motor)
  const refusal = expect.toSatisfy((error) => client.isRefusal(error)) as unknown
  const instance = (more: object = {}) => acme.instance({ motor, ...more })
  const send = (method: string, path: string, body?: unknown) => acme.as('editor')(method, path, { body })
  /** Logs in and expects success. */
  const expectUsable = async (made: Instance) => expect(await client.user(made)).toBe(made.user)
  const expectRefused = (made: Instance) => expect(client.user(made)).rejects.toEqual(refusal)

  test('has every documented field, and its uri is one of the stock driver', async () => {
    const made = await instance()
    const engineVersion = await versionByUri(made)
    expect(made).toEqual({
      ...shownInstance(deployment.installation, { identifier: 'PR #7', motor, engineVersion }),
      password: expect.stringMatching(/^[0-9A-Za-z]{24}$/) as string,
      uri: expect.any(String) as string,
      tls: { required: made.tls.required, ca: expect.stringMatching(/^-----BEGIN CERTIFICATE-----\n/) as string },
    })
    const url = new URL(made.uri)
    expect([url.hostname, Number(url.port), url.username, url.password, url.pathname]).toEqual([
      ...[made.host, made.port, made.user, made.password, `/${made.name}`],
    ])
    expect(url.protocol).toBe(`${motor.startsWith('mariadb') ? 'mysql' : motor.slice(0, motor.indexOf('-'))}:`)
    await expectUsable(made)
  })

  test.each([
    { identifier: 'a', stem: 'a' },
    { identifier: '7-up', stem: 'd7up' },
    { identifier: 'Feature/Payment_Provider-2', stem: 'featurepayme' },
    { identifier: 'x@y:z #1.+ /_', stem: 'xyz1' },
    { identifier: `x${'+'.repeat(62)}`, stem: 'x' },
  ])('has a name and a user from its identifier $identifier', async ({ identifier, stem }) => {
    const made = await instance({ identifier })
    expect(made.name).toMatch(new RegExp(`^${stem}[a-z2-7]{10}$`))
    expect(made.user).toBe(made.name)
    await expectUsable(made)
  })

  test('is returned by GET with credentials on request only, and by lists without', async () => {
    const made = await instance({ identifier: `listed ${motor}` })
    const shown = { ...made, password: null, uri: null, tls: { ...made.tls, ca: null } }
    const viewer = acme.as('viewer')
    expect((await expectSuccess(viewer('GET', pathOf(made)))).body.data.instance).toEqual(shown)
    const list = await expectSuccess(
      viewer('GET', `/v1/instances?motor=${motor}&identifier=${encodeURIComponent(made.identifier)}`),
    )
    expect(list.body.data.instances).toEqual([shown])
    expect((await expectSuccess(send('GET', `${pathOf(made)}?include=credentials`))).body.data.instance).toEqual(made)
  })

  test('that is disabled ends its sessions and refuses logins until it is enabled', async () => {
    const made = await instance()
    await client.add(made, 'kept')
    await using session = await openSession(made)
    expect((await send('PATCH', pathOf(made), { isEnabled: false })).body.data.instance.isEnabled).toBe(false)
    await expect(session.ping()).rejects.toThrow()
    await expectRefused(made)
    expect((await send('PATCH', pathOf(made), { isEnabled: true })).body.data.instance.isEnabled).toBe(true)
    expect(await client.items(made)).toEqual(['kept'])
  })

  test('with a new password refuses the old one and ends sessions that were opened with it', async () => {
    const before = await instance()
    await client.add(before, 'kept')
    await using session = await openSession(before)
    const after = (await expectSuccess(send('POST', `${pathOf(before)}/password`))).body.data.instance
    expect(after).toEqual({ ...before, password: after.password, uri: after.uri })
    expect(after.password).not.toBe(before.password)
    expect(new URL(after.uri).password).toBe(after.password)
    await expect(session.ping()).rejects.toThrow()
    await expectRefused(before)
    expect(await client.items(after)).toEqual(['kept'])
  })

  test('is empty after a reset, and its credentials stay', async () => {
    const made = await instance()
    await client.add(made, 'gone')
    await expectSuccess(send('POST', `${pathOf(made)}/reset`))
    expect(await client.items(made)).toEqual([])
    await client.add(made, 'new')
    expect(await client.items(made)).toEqual(['new'])
  })

  test('is gone after DELETE, as are its sessions, and another one of the same identifier is empty', async () => {
    const made = await instance({ identifier: 'again' })
    await client.add(made, 'gone')
    await using session = await openSession(made)
    await expectSuccess(send('DELETE', pathOf(made)))
    await expect(session.ping()).rejects.toThrow()
    await expectRefused(made)
    for (const method of ['GET', 'DELETE']) expect(codeOf(await send(method, pathOf(made)))).toBe('404 not_found')
    const next = await instance({ identifier: 'again' })
    expect(next.name).not.toBe(made.name)
    expect(await client.items(next)).toEqual([])
  })

  test('is created once by PUT with its identifier, also by five at once, and removed by DELETE', async () => {
    const path = `/v1/instances/by-identifier/${encodeURIComponent(`PR #8/${motor}`)}`
    const body = { region: deployment.installation.region.id, motor, ttl: 3_600 }
    const answers = await Promise.all(Array.from({ length: 5 }, () => send('PUT', path, body)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 201])
    const [made, ...others] = answers.map((answer) => answer.body.data.instance)
    for (const other of others) expect(other).toMatchObject({ id: made?.id, password: made?.password })
    if (made) await client.add(made, 'kept')
    const again = (await expectSuccess(send('PUT', path, body))).body.data.instance
    expect(await client.items(again)).toEqual(['kept'])
    expect(codeOf(await send('DELETE', path))).toBe('200 OK')
    await expectRefused(again)
    expect(codeOf(await send('DELETE', path))).toBe('200 OK')
  })

  test('is created once by POSTs with one idempotency key', async () => {
    const editor = acme.as('editor')
    const headers = { 'Idempotency-Key': crypto.randomUUID() }
    const body = deployment.instanceBody({ motor })
    const answers = await Promise.all(Array.from({ length: 3 }, () => editor('POST', '/v1/instances', { body, headers })))
    const [first] = answers
    for (const answer of answers) expect([answer.status, answer.body]).toEqual([201, first?.body])
    expect(codeOf(await editor('POST', '/v1/instances', { body: { ...body, ttl: 60 }, headers }))).toBe(
      '422 idempotency_key_reused',
    )
    if (first) await expectUsable(first.body.data.instance)
  })

  test('is one of ten that concurrent POSTs create, each with a login of its own', async () => {
    const made = await Promise.all(Array.from({ length: 10 }, (_, n) => instance({ identifier: `crowd ${n}` })))
    expect(new Set(made.map(({ name }) => name)).size).toBe(10)
    await Promise.all(made.map((each) => client.add(each, each.name)))
    for (const each of made) expect(await client.items(each)).toEqual([each.name])
    const deleted = await Promise.all(made.map((each) => send('DELETE', pathOf(each))))
    expect(deleted.map(codeOf)).toEqual(made.map(() => '200 OK'))
  })

  test('has extensions if it is of PostgreSQL, and otherwise refuses each name', async () => {
    const made = await instance()
    const path = `${pathOf(made)}/extensions`
    const { extensions } = (await expectSuccess(send('GET', path))).body.data
    const isPostgresql = motor.startsWith('postgresql')
    expect(extensions.some(({ name }) => name === 'citext')).toBe(isPostgresql)
    expect(extensions.length > 0).toBe(isPostgresql)
    const installed = isPostgresql ? '201 OK' : '422 unsupported_extension'
    expect(codeOf(await send('POST', path, { name: 'citext' }))).toBe(installed)
    const body = deployment.instanceBody({ motor, extensions: ['citext'] })
    expect(codeOf(await send('POST', '/v1/instances', body))).toBe(installed)
  })

  test('is copied as a template of its motor alone', async () => {
    const source = await instance()
    const other = motor === 'postgresql-15.4.0' ? 'postgresql-14.4.0' : 'postgresql-15.4.0'
    const answer = await send('POST', '/v1/instances', deployment.instanceBody({ motor: other, template: source.id }))
    expect(codeOf(answer)).toBe('422 unsupported_motor')
    for (const named of [motor, other]) expect(answer.body.msg).toContain(named)
    expect(answer.body.error.details).toEqual([{ field: 'template', message: answer.body.msg }])
  })
})

test.each(MOTORS)('a database of %s is gone after its ttl', { timeout: patient(240_000) }, async (motor) => {
  const made = expiring.get(motor)
  if (!made) throw new Error('no instance expires')
  const client = clientOf(motor)
  await vi.waitFor(async () => expect(codeOf(await first.as('viewer')('GET', pathOf(made)))).toBe('404 not_found'), {
    timeout: 100_000,
    interval: 500,
  })
  await expect(client.user(made)).rejects.toSatisfy((error) => client.isRefusal(error))
})
