import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { codeOf, fieldsOf } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { scratch } from '../support/postgresql/disks.ts'
import { regionId, expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { LATER } from '../support/patience.ts'

/** Requests for tunnels that the API accepts and rejects. */

const deployment = openDeployment()
let acme: Tenant
let region: number
beforeAll(async () => {
  acme = await deployment.namespace()
  region = await regionId(deployment.call)
})
afterAll(() => deployment[Symbol.asyncDispose]())

/** Calls as a different editor each time, because the rate limit for writes applies to each caller. */
const call: ReturnType<Tenant['as']> = (method, path, options) =>
  acme.as('editor')(method, `${acme.path}/tunnels${path}`, options)
const create = (body: object, headers: Record<string, string> = {}) => call('POST', '', { body, headers })
const makeTunnel = (config: object = {}) => acme.tunnel(config)

async function publicKey(type: string, bits: string): Promise<string> {
  const file = join(await scratch(), `key-${type}-${bits}-${process.pid}`)
  await promisify(execFile)('ssh-keygen', ['-q', '-t', type, '-b', bits, '-N', '', '-C', 'a comment', '-f', file])
  return (await readFile(`${file}.pub`, 'utf8')).trim()
}

const item = { name: 'X-A', value: 'v', type: 'request' }
const times = <T>(count: number, make: (index: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, index) => make(index))
const ED25519 = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}`

describe('an invalid body is rejected with the name of each invalid field', () => {
  test.each<{ body: object; fields: readonly string[] }>([
    { body: { regionId: 1 }, fields: ['name'] },
    { body: { name: 'a', regionId: '1' }, fields: ['regionId'] },
    { body: { name: 'a', regionId: 1, extra: 1 }, fields: ['extra'] },
    { body: { name: 'a', regionId: 1, ttl: 59 }, fields: ['ttl'] },
    {
      body: { name: '', regionId: 1.5, config: { httpsOnly: 'yes', sshIPWhitelist: ['192.0.2.0/33'] } },
      fields: ['config.httpsOnly', 'config.sshIPWhitelist[0]', 'name', 'regionId'],
    },
  ])('$fields', async ({ body, fields }) => {
    const answer = await create(body)
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', fields])
    for (const { field } of answer.body.error.details.slice(0, 3)) expect(answer.body.msg).toContain(field)
  })

  test.each<{ config: object; field: string }>([
    { config: { ingressIpWhitelist: [] }, field: 'ingressIpWhitelist' },
    { config: { ingressIPWhitelist: ['192.0.2.0/33'] }, field: 'ingressIPWhitelist[0]' },
    { config: { sshIPWhitelist: ['::1', '192.0.2.0/08'] }, field: 'sshIPWhitelist[1]' },
    { config: { sshIPWhitelist: ['::ffff:192.0.2.1'] }, field: 'sshIPWhitelist[0]' },
    { config: { sshIPWhitelist: ['example.com'] }, field: 'sshIPWhitelist[0]' },
    { config: { ingressIPWhitelist: ['1.2.3.4/0'] }, field: 'ingressIPWhitelist[0]' },
    { config: { ingressIPWhitelist: times(101, (index) => `192.0.2.${index}`) }, field: 'ingressIPWhitelist' },
    { config: { liveHeaderModifications: times(33, () => item) }, field: 'liveHeaderModifications' },
    {
      config: { liveHeaderModifications: [item, { ...item, name: 'Transfer-Encoding' }] },
      field: 'liveHeaderModifications[1].name',
    },
    { config: { liveHeaderModifications: [{ ...item, name: 'x-forwarded-for' }] }, field: 'liveHeaderModifications[0].name' },
    {
      config: { liveHeaderModifications: [{ ...item, value: 'a\r\nSet-Cookie: b' }] },
      field: 'liveHeaderModifications[0].value',
    },
    ...[' sp ', ' x', 'x ', '\tx', 'x\t', ' ', '\t'].map((value) => ({
      config: { liveHeaderModifications: [item, { ...item, value }] },
      field: 'liveHeaderModifications[1].value',
    })),
    { config: { authMode: 'password' }, field: 'authMode' },
    { config: { authorizedKeys: [ED25519.slice(0, -8)] }, field: 'authorizedKeys[0]' },
    { config: { authorizedKeys: [ED25519.replace('ssh-ed25519', 'ssh-rsa')] }, field: 'authorizedKeys[0]' },
    { config: { authorizedKeys: [`command="x" ${ED25519}`] }, field: 'authorizedKeys[0]' },
    { config: { authorizedKeys: times(51, () => ED25519) }, field: 'authorizedKeys' },
    { config: { target: 'localhost' }, field: 'target' },
    { config: { target: 'localhost:0' }, field: 'target' },
    { config: { target: 'localhost:65536' }, field: 'target' },
    { config: { target: 'a..b:80' }, field: 'target' },
    { config: { target: 'db.internal:5432' }, field: 'target' },
    { config: { target: '192.168.1.1:80', forwardToOtherHosts: false }, field: 'target' },
  ])('$config', async ({ config, field }) => {
    const posted = await create({ name: 'a', regionId: region, config })
    expect([codeOf(posted), fieldsOf(posted)]).toEqual(['400 invalid_request', [`config.${field}`]])
  })

  test('an RSA key below 2048 bits', async () => {
    const answer = await create({ name: 'a', regionId: 1, config: { authorizedKeys: [await publicKey('rsa', '1024')] } })
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', ['config.authorizedKeys[0]']])
  })
})

test('POST accepts the public keys of each type as ssh-keygen writes them', async () => {
  const keys = [
    await publicKey('ed25519', '256'),
    ...(await Promise.all(['256', '384', '521'].map((bits) => publicKey('ecdsa', bits)))),
    await publicKey('rsa', '2048'),
  ]
  expect((await makeTunnel({ authorizedKeys: keys })).config.authorizedKeys).toEqual(keys)
})

const ASTRAL = '🚢'.repeat(63)
test('a name has up to 63 characters of any alphabet, and is rejected with 64', async () => {
  const made = await create({ name: ASTRAL, regionId: region })
  expect(codeOf(made)).toBe('201 OK')
  const { id, name: given } = made.body.data.tunnel
  expect(given).toBe(ASTRAL)
  const renamed = '🛟'.repeat(63)
  const patched = await call('PATCH', `/${id}`, { body: { name: renamed } })
  expect([codeOf(patched), patched.body.data.tunnel.name]).toEqual(['200 OK', renamed])
  for (const name of [`${ASTRAL}a`, 'a\u0000', 'a\u0085', 'a\u007f']) {
    const answer = await create({ name, regionId: region })
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', ['name']])
  }
})

test.each([42, 0, -1, 9_999_999_999])('the unknown region %d is 422', async (regionId) => {
  const answer = await create({ name: 'a', regionId })
  expect([codeOf(answer), fieldsOf(answer)]).toEqual(['422 unknown_region', ['regionId']])
})

test('the certificate of a tunnel was obtained between the creation of the tunnel and now', async () => {
  const { id, createdAt } = await makeTunnel()
  const { certificate, history } = (await call('GET', `/${id}/certificate`)).body.data
  const times = [createdAt, certificate.obtainedAt, new Date().toISOString(), certificate.expiresAt]
  expect(times).toEqual(times.toSorted())
  const { obtainedAt: at, issuer, expiresAt } = certificate
  expect(history).toEqual([{ at, event: 'obtained', issuer, expiresAt, error: null, attempts: 1 }])
})

describe('PATCH', () => {
  test('replaces whole lists, restores defaults for null, and returns the new version', async () => {
    const { id } = await makeTunnel({ httpsOnly: true, sshIPWhitelist: ['192.0.2.0/24'], target: 'localhost:3000' })
    const patch = (body: object, headers: Record<string, string> = {}) => call('PATCH', `/${id}`, { body, headers })
    const first = await patch({ config: { httpsOnly: null, sshIPWhitelist: ['::1'], target: null } })
    expect(first.body.data.tunnel.config).toEqual({
      ...{ httpsOnly: false, allowCorsPreflight: false, forwardToOtherHosts: false, authMode: 'both' },
      ...{ sshIPWhitelist: ['::1'], ingressIPWhitelist: [], liveHeaderModifications: [], authorizedKeys: [] },
    })
    const etag = String(first.headers.etag)
    const second = await patch({ name: 'renamed' }, { 'If-Match': etag })
    expect([codeOf(second), second.body.data.tunnel.name]).toEqual(['200 OK', 'renamed'])
    expect(codeOf(await patch({ name: 'lost' }, { 'If-Match': etag }))).toBe('409 conflict')
    expect(codeOf(await patch({ name: 'third' }, { 'If-Match': String(second.headers.etag) }))).toBe('200 OK')
  })

  test('checks a target against the stored settings of the tunnel', async () => {
    const { id } = await makeTunnel()
    const patch = (config: object) => call('PATCH', `/${id}`, { body: { config } })
    const config = { target: 'db.internal:5432' }
    const refused = await patch(config)
    expect([codeOf(refused), fieldsOf(refused)]).toEqual(['400 invalid_request', ['config.target']])
    const posted = await create({ name: 'a', regionId: region, config })
    expect([refused.body.msg, refused.body.error.details]).toEqual([posted.body.msg, posted.body.error.details])
    expect(codeOf(await patch({ forwardToOtherHosts: true }))).toBe('200 OK')
    expect(codeOf(await patch({ target: 'db.internal:5432' }))).toBe('200 OK')
    const taken = await patch({ forwardToOtherHosts: false })
    expect([codeOf(taken), fieldsOf(taken)]).toEqual(['400 invalid_request', ['config.target']])
  })

  test('restores every default for a null config, and changes nothing without fields', async () => {
    const { id, config: defaults } = await makeTunnel()
    const patch = (body: object) => expectSuccess(call('PATCH', `/${id}`, { body }))
    const instanceBody = { httpsOnly: true, sshIPWhitelist: ['::1'], target: 'localhost:80' }
    const set = (await patch({ config: instanceBody })).body.data.tunnel.config
    expect(set).toEqual({ ...defaults, ...instanceBody })
    expect((await patch({})).body.data.tunnel.config).toEqual(set)
    expect((await patch({ config: null })).body.data.tunnel.config).toEqual(defaults)
  })

  test.each<{ body: object; fields: readonly string[] }>([
    { body: { name: null }, fields: ['name'] },
    { body: { regionId: 1 }, fields: ['regionId'] },
    { body: { hostname: 'a' }, fields: ['hostname'] },
    {
      body: { config: { authMode: 'none', ingressIPWhitelist: ['192.0.2.1/99'] } },
      fields: ['config.authMode', 'config.ingressIPWhitelist[0]'],
    },
    {
      body: { config: { target: 'db.internal:5432', forwardToOtherHosts: false, authMode: 'none' } },
      fields: ['config.authMode', 'config.target'],
    },
  ])('rejects $body', async ({ body, fields }) => {
    const { id } = await makeTunnel()
    const answer = await call('PATCH', `/${id}`, { body })
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', fields])
  })
})

describe('temporary passwords', () => {
  test('are rejected for a tunnel that accepts only keys, and the error names the required change', async () => {
    const { id } = await acme.tunnel({ authMode: 'key' })
    const path = `${acme.path}/tunnels/${id}`
    const refused = await acme.as('editor')('POST', `${path}/passwords`)
    expect(codeOf(refused)).toBe('409 conflict')
    expect(refused.body.msg).toContain('{"config":{"authMode":"both"}}')
    await expectSuccess(acme.as('editor')('PATCH', path, { body: { config: { authMode: 'both' } } }))
    await expectSuccess(acme.as('editor')('POST', `${path}/passwords`))
  })

  test('are the same again for a repeated Idempotency-Key, and need no body', async () => {
    const { hostname } = await makeTunnel()
    const editor = acme.as('editor')
    const path = `${acme.path}/tunnels/${hostname}/passwords`
    const issue = () => editor('POST', path, { headers: { 'Idempotency-Key': 'once' } })
    const [first, again] = [await issue(), await issue()]
    expect(codeOf(first)).toBe('201 OK')
    expect(first.body.data.password.password).toMatch(/^mt_[0-9A-Za-z]{32}$/)
    expect(again.body.data.password).toEqual(first.body.data.password)
    await vi.waitFor(async () => {
      const audit = `${acme.path}/audit?kind=TunnelPassword&limit=1`
      const { entries } = (await acme.as('viewer')('GET', audit)).body.data
      expect(entries).toHaveLength(1)
      expect(JSON.stringify(entries)).not.toMatch(/mt_|[0-9a-f]{64}/)
    }, LATER)
  })

  test('are revoked only with the current version in If-Match', async () => {
    const { id } = await makeTunnel()
    const issued = await call('POST', `/${id}/passwords`)
    const { password } = issued.body.data
    const take = (version: string) => call('DELETE', `/${id}/passwords/${password.id}`, { headers: { 'If-Match': version } })
    expect(codeOf(await take('"1"'))).toBe('409 conflict')
    expect((await call('GET', `/${id}/passwords`)).body.data).toMatchObject({ passwords: [{ id: password.id }] })
    expect(codeOf(await take(String(issued.headers.etag)))).toBe('200 OK')
    expect((await call('GET', `/${id}/passwords`)).body.data).toMatchObject({ passwords: [] })
  })

  test('requested during the deletion of the tunnel are issued, a conflict or not found, and no call waits', async () => {
    for (let round = 0; round < 4; round++) {
      const { id } = await makeTunnel()
      const [gone, issued] = await Promise.all([call('DELETE', `/${id}`), call('POST', `/${id}/passwords`, { body: {} })])
      expect(codeOf(gone)).toBe('200 OK')
      expect(['201 OK', '404 not_found', '409 conflict']).toContain(codeOf(issued))
    }
  })

  test('are at most ten at a time, also when requested at once', async () => {
    const { id } = await makeTunnel()
    const answers = await Promise.all(times(14, () => call('POST', `/${id}/passwords`, { body: {} })))
    const codes = answers.map(codeOf)
    expect(codes.filter((code) => code === '201 OK')).toHaveLength(10)
    expect(codes.filter((code) => code === '403 quota_exceeded')).toHaveLength(4)
  })
})

test.each([
  ['cursor=abc', 'cursor'],
  ['cursor=abc&limit=1', 'cursor'],
  ['to=2020-01-01T00:00:00Z', 'to'],
  ['from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z', 'to'],
])('a stream of new requests cannot be combined with %s', async (query, field) => {
  const { id } = await makeTunnel()
  const answer = await call('GET', `/${id}/requests?follow=true&${query}`)
  expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', [field]])
})

test('a viewer reads all of a tunnel and issues nothing; another namespace finds nothing', async () => {
  const { id } = await makeTunnel()
  const reads = ['', '/passwords', '/connections', '/requests', '/stats', '/certificate', '/connect']
  const viewer = acme.as('viewer')
  const own = `${acme.path}/tunnels/${id}`
  for (const path of reads) expect([path, codeOf(await viewer('GET', own + path))]).toEqual([path, '200 OK'])
  expect(codeOf(await viewer('POST', `${own}/passwords`, { body: {} }))).toBe('403 forbidden')
  expect(codeOf(await viewer('DELETE', own))).toBe('403 forbidden')

  const other = await deployment.namespace()
  const elsewhere = other.as('admin')
  for (const path of reads) {
    const answer = await elsewhere('GET', `${other.path}/tunnels/${id}${path}`)
    expect([path, codeOf(answer)]).toEqual([path, '404 not_found'])
  }
})
