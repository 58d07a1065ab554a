import type { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { codeOf, fieldsOf } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { shownInstance } from '../support/api/answer-rules.ts'
import { login, query } from '../support/postgresql/sql.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { LATER } from '../support/patience.ts'

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const patch = (id: string, body: unknown) => acme.as('editor')('PATCH', `/v1/instances/${id}`, { body })
const ahead = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString()
/** Promise that resolves when the server has ended the session. */
const endOf = (session: Client) => new Promise((resolve) => session.on('error', () => undefined).once('end', resolve))

describe('GET /v1/instances/{id}', () => {
  test('returns every field except the credentials, also after a change', async () => {
    const { id, name, expiresAt } = await acme.instance({ ttl: 600 })
    const { status, body } = await acme.as('viewer')('GET', `/v1/instances/${id}`)
    expect(status).toBe(200)
    expect(body.data).toEqual({
      instance: shownInstance(deployment.installation, { identifier: 'PR #7', id, name, user: name, expiresAt }),
    })
  })

  test('finds an instance by its id in upper case, too', async () => {
    const { id } = await acme.instance()
    expect((await acme.as('viewer')('GET', `/v1/instances/${id.toUpperCase()}`)).body.data.instance.id).toBe(id)
  })

  test.each(['nobody', crypto.randomUUID(), '%27%20OR%201=1', '..', '%2e%2e%2fapi-tokens'])('%s is 404', async (id) => {
    expect((await acme.as('editor')('GET', `/v1/instances/${id}`)).status).toBe(404)
  })
})

describe('PATCH /v1/instances/{id}', () => {
  test('disables an instance, which ends its sessions and rejects logins, and enables it again', async () => {
    const instance = await acme.instance()
    const ended = endOf(await login(instance))
    expect((await patch(instance.id, { isEnabled: false })).body.data.instance.isEnabled).toBe(false)
    await ended
    await expect(query(instance, 'SELECT 1')).rejects.toMatchObject({ code: '28000' })
    expect((await patch(instance.id, { isEnabled: true })).body.data.instance.isEnabled).toBe(true)
    expect(await query(instance, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  test('renames an instance and keeps its database, user and password', async () => {
    const instance = await acme.instance({ identifier: 'before' })
    const { body } = await patch(instance.id, { identifier: 'after' })
    expect(body.data.instance).toMatchObject({ identifier: 'after', name: instance.name, user: instance.user })
    expect(await query(instance, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  test('sets the expiry time, and removes it with null', async () => {
    const { id } = await acme.instance()
    const at = ahead(3_600)
    expect((await patch(id, { expiresAt: at })).body.data.instance.expiresAt).toBe(at)
    expect((await patch(id, { expiresAt: null })).body.data.instance.expiresAt).toBeNull()
  })

  test.each([
    { what: 'what cannot change', body: { motor: 'postgresql-14.4.0', region: 'x' }, fields: ['motor', 'region'] },
    { what: 'the password', body: { password: 'secret' }, fields: ['password'] },
    { what: 'a text for isEnabled', body: { isEnabled: 'no' }, fields: ['isEnabled'] },
    { what: 'null for isEnabled', body: { isEnabled: null }, fields: ['isEnabled'] },
    { what: 'null for the identifier', body: { identifier: null }, fields: ['identifier'] },
    { what: 'a ttl of 59', body: { ttl: 59 }, fields: ['ttl'] },
    { what: 'expiresAt in the past', body: { expiresAt: '2020-01-01T00:00:00Z' }, fields: ['expiresAt'] },
    { what: 'expiresAt past 30 days', body: { expiresAt: '2120-01-01T00:00:00Z' }, fields: ['expiresAt'] },
  ])('of $what is 400', async ({ body, fields }) => {
    const answer = await patch((await acme.instance()).id, body)
    expect(codeOf(answer)).toBe('400 invalid_request')
    expect(fieldsOf(answer)).toEqual(fields)
  })

  test('accepts application/merge-patch+json', async () => {
    const { id } = await acme.instance()
    const headers = { 'Content-Type': 'application/merge-patch+json' }
    const answer = await acme.as('editor')('PATCH', `/v1/instances/${id}`, { body: { identifier: 'merged' }, headers })
    expect(answer.body.data.instance.identifier).toBe('merged')
  })
})

describe('a version of an instance', () => {
  test('is its ETag; a change with another version is 409 and changes nothing', async () => {
    const { id } = await acme.instance()
    const call = acme.as('editor')
    const path = `/v1/instances/${id}`
    const { headers } = await call('GET', path)
    expect(headers.etag).toMatch(/^"[^"]+"$/)
    const changed = await call('PATCH', path, { body: { identifier: 'mine' }, headers: { 'If-Match': String(headers.etag) } })
    expect(changed.status).toBe(200)
    expect(changed.headers.etag).not.toBe(headers.etag)
    const stale = { headers: { 'If-Match': String(headers.etag) } }
    expect(codeOf(await call('PATCH', path, { body: { identifier: 'yours' }, ...stale }))).toBe('409 conflict')
    expect(codeOf(await call('DELETE', path, stale))).toBe('409 conflict')
    expect((await call('GET', path)).body.data.instance.identifier).toBe('mine')
  })

  test('matches as one of several strong tags, never as a weak tag, and an invalid tag is 400', async () => {
    const { id } = await acme.instance()
    const call = acme.as('editor')
    const etag = String((await call('GET', `/v1/instances/${id}`)).headers.etag)
    const rules = [
      ...[
        ['', '400 invalid_request'],
        ['W/', '400 invalid_request'],
        ['"1" "2"', '400 invalid_request'],
      ],
      ...[
        [`W/${etag}`, '409 conflict'],
        ['"1", "2"', '409 conflict'],
        ['"1", "2,3"', '409 conflict'],
      ],
      ...[
        [`"1", ${etag}`, '200 OK'],
        [etag.replaceAll('"', ''), '200 OK'],
        ['*', '200 OK'],
      ],
    ]
    for (const [tag = '', code] of rules) {
      const answer = await call('PATCH', `/v1/instances/${id}`, { body: { isEnabled: true }, headers: { 'If-Match': tag } })
      expect([tag, codeOf(answer)]).toEqual([tag, code])
      if (answer.status === 400) expect(fieldsOf(answer)).toEqual(['If-Match'])
    }
  })

  test('protects password and content: a rotation or reset with another version changes neither', async () => {
    const instance = await acme.instance()
    await query(instance, 'CREATE TABLE t (i int)')
    const call = acme.as('editor')
    const path = `/v1/instances/${instance.id}`
    for (const what of ['password', 'reset'])
      expect(codeOf(await call('POST', `${path}/${what}`, { headers: { 'If-Match': '"1"' } }))).toBe('409 conflict')
    expect(await query(instance, `SELECT to_regclass('t')::text AS t`)).toEqual([{ t: 't' }])
    const { etag } = (await call('GET', path)).headers
    const reset = await call('POST', `${path}/reset`, { headers: { 'If-Match': String(etag) } })
    expect(codeOf(reset)).toBe('200 OK')
    const rotated = await call('POST', `${path}/password`, { headers: { 'If-Match': String(reset.headers.etag) } })
    expect(codeOf(rotated)).toBe('200 OK')
    expect(await query(rotated.body.data.instance, `SELECT to_regclass('t')::text AS t`)).toEqual([{ t: null }])
  })
})

describe('POST /v1/instances/{id}/password', () => {
  test('replaces the password: logins with the old one fail, with the new one succeed', async () => {
    const before = await acme.instance()
    const { status, body } = await acme.as('editor')('POST', `/v1/instances/${before.id}/password`)
    expect(status).toBe(200)
    const { instance } = body.data
    expect(Object.keys(instance).sort()).toEqual(Object.keys(before).sort())
    expect(instance).toMatchObject({ id: before.id, name: before.name, user: before.user })
    expect(instance.password).not.toBe(before.password)
    expect(new URL(instance.uri).password).toBe(instance.password)
    await expect(query(before, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })
    expect(await query(instance, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })
})

describe('POST /v1/instances/{id}/reset', () => {
  test('empties the database and keeps its credentials', async () => {
    const instance = await acme.instance()
    await query(instance, 'CREATE TABLE t (i int); CREATE SCHEMA s; SELECT lo_from_bytea(0, $$x$$)')
    const { status, body } = await acme.as('editor')('POST', `/v1/instances/${instance.id}/reset`)
    expect(status).toBe(200)
    expect(body.data.instance).toEqual({ ...instance, password: null, uri: null, tls: { ...instance.tls, ca: null } })
    expect(
      await query(
        instance,
        `SELECT to_regclass('t') AS t, to_regnamespace('s') AS s, count(*)::int AS n FROM pg_largeobject_metadata`,
      ),
    ).toEqual([{ t: null, s: null, n: 0 }])
  })

  test('restores the content of its template', async () => {
    const source = await acme.instance()
    await query(source, 'CREATE TABLE t AS SELECT 1 AS i')
    const copy = await acme.instance({ template: source.id })
    await query(copy, 'UPDATE t SET i = 2')
    expect((await acme.as('editor')('POST', `/v1/instances/${copy.id}/reset`)).status).toBe(200)
    expect(await query(copy, 'SELECT i FROM t')).toEqual([{ i: 1 }])
  })

  test('is 409 at once when the template is deleted, and the instance works on', async () => {
    const source = await acme.instance()
    const copy = await acme.instance({ template: source.id })
    const call = acme.as('editor')
    const path = `/v1/instances/${copy.id}`
    await expectSuccess(call('DELETE', `/v1/instances/${source.id}`))
    const refused = await call('POST', `${path}/reset`)
    expect([codeOf(refused), refused.body.msg]).toEqual(['409 conflict', expect.stringContaining('template')])
    expect((await expectSuccess(call('PATCH', path, { body: { isEnabled: false } }))).status).toBe(200)
    await expect(query(copy, 'SELECT 1')).rejects.toMatchObject({ code: '28000' })
    expect((await expectSuccess(call('PATCH', path, { body: { isEnabled: true } }))).status).toBe(200)
    const { instance } = (await expectSuccess(call('POST', `${path}/password`))).body.data
    expect(await query(instance, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  test('that waits for its template delays no other call and completes in the end', async () => {
    const source = await acme.instance()
    await query(source, 'CREATE TABLE t AS SELECT 1 AS i')
    const copy = await acme.instance({ template: source.id })
    await query(copy, 'UPDATE t SET i = 2')
    const call = acme.as('editor')
    const path = `/v1/instances/${copy.id}`
    const inTheWay = await login(source)
    const resetting = call('POST', `${path}/reset`)
    try {
      await vi.waitFor(async () => {
        const { entries } = (await expectSuccess(call('GET', `${acme.path}/audit?id=${copy.id}&action=update`))).body.data
        expect(entries).toMatchObject([{ changes: [{ path: 'resetVersion', to: 1 }] }])
      }, LATER)
      expect(codeOf(await patch(copy.id, { isEnabled: false }))).toBe('200 OK')
      await expect(query(copy, 'SELECT 1')).rejects.toMatchObject({ code: '28000' })
      expect((await expectSuccess(patch(copy.id, { isEnabled: true }))).status).toBe(200)
      const { instance } = (await expectSuccess(call('POST', `${path}/password`))).body.data
      expect(await query(instance, 'SELECT i FROM t')).toEqual([{ i: 2 }])
      await inTheWay.end()
      expect((await expectSuccess(resetting)).body.data.instance.isEnabled).toBe(true)
      await vi.waitFor(async () => expect(await query(instance, 'SELECT i FROM t')).toEqual([{ i: 1 }]), LATER)
    } finally {
      await inTheWay.end()
      await resetting
    }
  })
})

test('concurrent changes all succeed and leave a usable instance', async () => {
  const { id } = await acme.instance()
  const path = `/v1/instances/${id}`
  const editor = acme.as('editor')
  const asked = [
    ...[editor('POST', `${path}/password`), editor('POST', `${path}/reset`), editor('POST', `${path}/password`)],
    ...[patch(id, { isEnabled: false }), patch(id, { identifier: 'renamed' }), patch(id, { expiresAt: ahead(600) })],
  ]
  for (const answer of await Promise.all(asked)) expect(codeOf(answer)).toBe('200 OK')
  expect((await patch(id, { isEnabled: true })).body.data.instance).toMatchObject({ isEnabled: true, identifier: 'renamed' })
  const { instance } = (await expectSuccess(editor('POST', `${path}/password`))).body.data
  expect(await query(instance, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
})

describe('DELETE /v1/instances/{id}', () => {
  test('answers when the database, its sessions and its login are gone', async () => {
    const instance = await acme.instance()
    const ended = endOf(await login(instance))
    const path = `/v1/instances/${instance.id}`
    expect(await acme.as('editor')('DELETE', path)).toMatchObject({ status: 200, body: { msg: 'OK', data: {} } })
    await ended
    await expect(query(instance, 'SELECT 1')).rejects.toMatchObject({
      code: expect.stringMatching(/^(28P01|28000|3D000)$/) as string,
    })
    for (const [method, below] of [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/password'],
      ['POST', '/reset'],
    ] as const) {
      const body = method === 'PATCH' ? { identifier: 'x' } : undefined
      expect(codeOf(await acme.as('editor')(method, path + below, { body }))).toBe('404 not_found')
    }
  })

  test('succeeds for both of two concurrent calls', async () => {
    const { id } = await acme.instance()
    const path = `/v1/instances/${id}`
    const answers = await Promise.all([acme.as('editor')('DELETE', path), acme.as('editor')('DELETE', path)])
    const statuses = answers.map(({ status }) => status)
    expect(statuses).toContain(200)
    for (const status of statuses) expect([200, 404]).toContain(status)
  })

  test('of a template keeps its copies', async () => {
    const source = await acme.instance()
    await query(source, 'CREATE TABLE t AS SELECT 1 AS i')
    const copy = await acme.instance({ template: source.id })
    await expectSuccess(acme.as('editor')('DELETE', `/v1/instances/${source.id}`))
    expect(await query(copy, 'SELECT i FROM t')).toEqual([{ i: 1 }])
  })
})
