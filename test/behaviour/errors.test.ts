import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import { text } from 'node:stream/consumers'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codeOf, fieldsOf } from '../support/api/answers.ts'
import { freshSlug, openDeployment } from '../support/deployment/deployment.ts'
import type { CallOptions } from '../support/api/answers.ts'
import type { Tenant } from '../support/api/tenant.ts'

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const LIMIT = 65_536
const bytes = (text: string) => new TextEncoder().encode(text)
/** Returns a valid body of exactly `length` bytes. */
const bodyOf = (length: number): Uint8Array => {
  const text = JSON.stringify(deployment.instanceBody())
  return bytes(text + ' '.repeat(length - text.length))
}
const editor = (method: string, path: string, options?: CallOptions) => acme.as('editor')(method, path, options)
const create = (body: unknown, headers = {}) => editor('POST', '/v1/instances', { body, headers })
const typed = (type: string, body = JSON.stringify(deployment.instanceBody())) => create(bytes(body), { 'Content-Type': type })

describe('a body', () => {
  test.each([
    { what: 'of broken JSON', is: '400 invalid_json', send: () => create(bytes('{"identifier":')) },
    { what: 'of a list', is: '400 invalid_request', send: () => create([]) },
    { what: 'of null', is: '400 invalid_request', send: () => create(null) },
    { what: 'of a string', is: '400 invalid_request', send: () => create('identifier') },
    { what: 'of a thousand brackets', is: '400 invalid_json', send: () => create(bytes('['.repeat(60_000))) },
    { what: 'that is not UTF-8', is: '400 invalid_json', send: () => create(new Uint8Array([0x7b, 0xff, 0x7d])) },
    { what: 'that is missing', is: '400 invalid_json', send: () => create(undefined) },
    { what: 'of 64 KiB and a byte', is: '413 too_large', send: () => create(bodyOf(LIMIT + 1)) },
    { what: 'of many MiB', is: '413 too_large', send: () => create(bodyOf(5_000_000)) },
    { what: 'of text/plain', is: '415 unsupported_media_type', send: () => typed('text/plain') },
    { what: 'of a form', is: '415 unsupported_media_type', send: () => typed('application/x-www-form-urlencoded', 'a=b') },
    { what: 'without a type', is: '415 unsupported_media_type', send: () => typed('') },
    { what: 'of another charset', is: '415 unsupported_media_type', send: () => typed('application/json; charset=utf-16') },
    { what: 'of a merge patch', is: '415 unsupported_media_type', send: () => typed('application/merge-patch+json') },
    {
      what: 'that is compressed',
      is: '415 unsupported_media_type',
      send: () => create(bytes('{}'), { 'Content-Encoding': 'gzip' }),
    },
    { what: 'of exactly 64 KiB', is: '201 OK', send: () => create(bodyOf(LIMIT)) },
    { what: 'with a charset of utf-8', is: '201 OK', send: () => typed('application/json; charset=UTF-8') },
  ])('$what is $is', async ({ is, send }) => {
    expect(codeOf(await send())).toBe(is)
  })

  test('with unknown and mistyped fields is rejected with the names of all of them', async () => {
    const answer = await create({ identifier: 7, motor: ['x'], colour: 'red', ttl: 'long', 'drop table': 1 })
    expect(codeOf(answer)).toBe('400 invalid_request')
    expect(fieldsOf(answer)).toEqual(['["drop table"]', 'colour', 'identifier', 'motor', 'region', 'ttl'])
    for (const { message } of answer.body.error.details) expect(message).toMatch(/\w/)
  })

  test.each<{ of: string; path: () => string; on?: 'shared' | 'dedicated'; fixed: Readonly<Record<string, string>> }>([
    {
      of: 'an instance',
      path: () => '/v1/instances',
      fixed: {
        ...{ motor: 'create another instance', region: 'create another instance', port: 'Mooring sets it' },
        ...{ password: 'POST …/password sets a new one', extensions: 'POST …/extensions installs one' },
      },
    },
    {
      of: 'a dedicated database',
      path: () => '/v1/databases',
      on: 'dedicated',
      fixed: {
        ...{ name: 'create another database', engine: 'create another database', region: 'create another database' },
        ...{ restoreFrom: 'create another database with it', status: 'Mooring sets it' },
        connection: 'POST …/password sets a new password',
      },
    },
    {
      of: 'a tunnel',
      path: () => `${acme.path}/tunnels`,
      fixed: { regionId: 'create another tunnel', hostname: 'Mooring sets it', ttl: 'create another tunnel with it' },
    },
    {
      of: 'a webhook',
      path: () => `${acme.path}/tunnels/${randomUUID()}/webhooks`,
      fixed: { id: 'Mooring sets it', secret: 'POST …/rotate-secret replaces it' },
    },
  ])(
    'of a PATCH of $of is rejected with what to do instead for each field that cannot be changed',
    async ({ path, on = 'shared', fixed }) => {
      const body = Object.fromEntries([...Object.keys(fixed), 'colour'].map((field) => [field, 'x']))
      const answer = await editor('PATCH', `${path()}/${randomUUID()}`, { body, on })
      expect(codeOf(answer)).toBe('400 invalid_request')
      const messages = new Map(answer.body.error.details.map(({ field, message }) => [field, message]))
      for (const [field, instead] of Object.entries(fixed)) expect(messages.get(field)).toBe(`cannot be changed: ${instead}`)
      expect(messages.get('colour')).toMatch(/^is not a known field/)
      expect(messages.size).toBe(Object.keys(fixed).length + 1)
    },
  )

  test('with the field __proto__ is rejected with its name', async () => {
    const answer = await create(bytes(`{"__proto__":{"admin":true},${JSON.stringify(deployment.instanceBody()).slice(1)}`))
    expect(codeOf(answer)).toBe('400 invalid_request')
    expect(fieldsOf(answer)).toEqual(['__proto__'])
  })

  test('is never quoted by the error', async () => {
    const secret = 'password-that-must-not-come-back'
    for (const body of [
      bytes(`{"identifier":"${secret}`),
      deployment.instanceBody({ ttl: secret }),
      deployment.instanceBody({ identifier: `${secret}\n` }),
    ]) {
      expect(JSON.stringify((await create(body)).body)).not.toContain(secret)
    }
  })
})

describe('a body of an operation that needs none', () => {
  const none = crypto.randomUUID()
  test.each([
    ['DELETE', () => `/v1/instances/${none}`],
    ['POST', () => `/v1/instances/${none}/reset`],
    ['DELETE', () => `${acme.path}/tunnels/${none}`],
    ['DELETE', () => `${acme.path}/tunnels/${none}/passwords/${none}`],
    ['DELETE', () => `${acme.path}/api-tokens/${none}`],
    ['DELETE', () => `${acme.path}/members/local:nobody`],
  ] as const)('follows the rules of every other body: %s', async (method, path) => {
    const admin = acme.as('admin')
    // Node sets no Content-Length for the body of a DELETE by itself.
    const send = (body: Uint8Array, headers = {}) =>
      admin(method, path(), { body, headers: { 'Content-Length': String(body.length), ...headers } })
    const unknown = await send(bytes('{"keepBackups":true,"drop table":1}'))
    expect([codeOf(unknown), fieldsOf(unknown)]).toEqual(['400 invalid_request', ['["drop table"]', 'keepBackups']])
    expect(codeOf(await send(bytes('{"a":')))).toBe('400 invalid_json')
    expect(codeOf(await send(bytes('[]')))).toBe('400 invalid_request')
    expect(codeOf(await send(bytes('x'), { 'Content-Type': 'text/plain' }))).toBe('415 unsupported_media_type')
    expect(codeOf(await send(bodyOf(LIMIT + 1)))).toBe('413 too_large')
  })

  test.each<Readonly<Record<string, string>>>([
    {},
    { 'Content-Type': 'application/json' },
    { 'Content-Type': 'text/plain' },
    { 'Content-Length': '0' },
    { 'Content-Type': 'application/json', 'Content-Length': '0' },
    { 'Transfer-Encoding': 'chunked' },
    { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' },
  ])('may be empty with the headers %j', async (headers) => {
    const { id } = await acme.instance()
    expect(codeOf(await editor('POST', `/v1/instances/${id}/reset`, { headers }))).toBe('200 OK')
    expect(codeOf(await editor('DELETE', `/v1/instances/${id}`, { headers }))).toBe('200 OK')
  })
})

describe('a query', () => {
  test.each([
    { query: 'colour=red', fields: ['colour'] },
    { query: 'colour=red&size=1&limit=0', fields: ['colour', 'limit', 'size'] },
    { query: 'limit=1&limit=2', fields: ['limit'] },
    { query: 'limit=201', fields: ['limit'] },
    { query: 'limit=-1', fields: ['limit'] },
    { query: 'limit=1e1', fields: ['limit'] },
    { query: 'limit=', fields: ['limit'] },
    { query: 'limit=ten', fields: ['limit'] },
    { query: 'cursor=', fields: ['cursor'] },
    { query: 'cursor=made-up', fields: ['cursor'] },
    { query: 'cursor=W10', fields: ['cursor'] },
    { query: 'identifier=%00', fields: ['identifier'] },
    { query: 'identifier=%zz', fields: ['identifier'] },
    { query: 'access_token=x', fields: ['access_token'] },
    { query: '__proto__=x', fields: ['__proto__'] },
  ])('$query is 400', async ({ query, fields }) => {
    const answer = await acme.as('viewer')('GET', `/v1/instances?${query}`)
    expect(codeOf(answer)).toBe('400 invalid_request')
    expect(fieldsOf(answer)).toEqual(fields)
  })

  test.each([
    ['GET', '/v1/regions?colour=red', 'shared'],
    ['GET', '/v1/me?colour=red', 'shared'],
    ['GET', '/v1/organizations?colour=red', 'shared'],
    ['GET', '/v1/engines?colour=red', 'dedicated'],
    ['GET', '/v1/databases/create/metadata?colour=red', 'dedicated'],
    ['POST', '/v1/instances?colour=red', 'shared'],
    ['GET', '/v1/databases?colour=red', 'dedicated'],
  ] as const)('%s %s is 400: no operation ignores a parameter', async (method, path, on) => {
    const answer = await editor(method, path, { on, body: method === 'POST' ? deployment.instanceBody() : undefined })
    expect(codeOf(answer)).toBe('400 invalid_request')
    expect(fieldsOf(answer)).toEqual(['colour'])
  })
})

describe('a path', () => {
  const id = crypto.randomUUID()
  test.each([
    { method: 'GET', path: '/', on: 'shared', is: '404 not_found' },
    { method: 'GET', path: '/v1', on: 'shared', is: '404 not_found' },
    { method: 'GET', path: '/v2/instances', on: 'shared', is: '404 not_found' },
    { method: 'GET', path: '/v1/instances/', on: 'shared', is: '404 not_found' },
    { method: 'GET', path: '/V1/instances', on: 'shared', is: '404 not_found' },
    { method: 'GET', path: '/v1/nothing', on: 'shared', is: '404 not_found' },
    { method: 'GET', path: '/v1/engines', on: 'shared', is: '404 not_found' },
    { method: 'POST', path: '/v1/instances', on: 'dedicated', is: '404 not_found' },
    { method: 'GET', path: `/v1/databases/${id}`, on: 'dedicated', is: '404 not_found' },
    { method: 'GET', path: `/v1/databases/${id}/nothing`, on: 'dedicated', is: '404 not_found' },
    { method: 'GET', path: `/v1/instances/${id}/nothing`, on: 'shared', is: '404 not_found' },
    { method: 'GET', path: `/v1/instances/${id}`, on: 'shared', is: '404 not_found' },
    { method: 'GET', path: '/v1/instances/%00', on: 'shared', is: '400 invalid_request' },
    { method: 'GET', path: '/v1/instances/%E0%A4%A', on: 'shared', is: '400 invalid_request' },
    { method: 'GET', path: `/v1/instances?cursor=${'x'.repeat(9_000)}`, on: 'shared', is: '400 invalid_request' },
  ] as const)('$method $path on the $on listener is $is', async ({ method, path, on, is }) => {
    expect(codeOf(await editor(method, path, { on }))).toBe(is)
  })

  test.each([
    { path: '/v1/instance', on: 'shared', says: '/v1/instances' },
    { path: '/v1/instances/', on: 'shared', says: '/v1/instances' },
    { path: '/V1/regions', on: 'dedicated', says: '/v1/regions' },
    { path: '/v1/databases', on: 'shared', says: 'served by the dedicated API' },
    { path: '/v1/engines', on: 'shared', says: 'served by the dedicated API' },
    { path: '/v1/instances', on: 'dedicated', says: 'served by the shared API' },
    { path: '/v1/nowhere/at/all', on: 'shared', says: '/openapi.json' },
  ] as const)('$path on the $on listener is 404 and refers to $says', async ({ path, on, says }) => {
    const answers = [await editor('GET', path, { on }), await deployment.call('GET', path, { on, token: null })]
    for (const { status, body } of answers) expect([status, body.msg]).toEqual([404, expect.stringContaining(says)])
  })

  test('in an unknown namespace has the same message as in an existing one', async () => {
    const nothing = (organization: string) => deployment.call('GET', `/v1/organizations/${organization}/nothing`, { token: null })
    const [there, not] = [await nothing(acme.organization), await nothing(freshSlug())]
    expect(there.body.msg).toBe(not.body.msg)
  })

  test.each(['%zz', '%E0%A4%A', '%'])('with %s is rejected with `path` as the invalid field', async (segment) => {
    const answer = await editor('GET', `/v1/instances/${segment}`)
    expect([codeOf(answer), answer.body.error.details]).toEqual([
      '400 invalid_request',
      [{ field: 'path', message: 'is not valid percent-encoded UTF-8' }],
    ])
  })

  test.each([
    { method: 'DELETE', path: '/v1/instances', on: 'shared', allow: 'GET, HEAD, POST' },
    { method: 'OPTIONS', path: '/v1/instances', on: 'shared', allow: 'GET, HEAD, POST' },
    { method: 'PUT', path: `/v1/instances/${id}`, on: 'shared', allow: 'DELETE, GET, HEAD, PATCH' },
    { method: 'GET', path: `/v1/instances/${id}/password`, on: 'shared', allow: 'POST' },
    { method: 'POST', path: '/v1/regions', on: 'shared', allow: 'GET, HEAD' },
    { method: 'POST', path: '/v1/engines', on: 'dedicated', allow: 'GET, HEAD' },
    { method: 'POST', path: '/v1/databases/create/metadata', on: 'dedicated', allow: 'GET, HEAD' },
    { method: 'DELETE', path: '/openapi.json', on: 'shared', allow: 'GET, HEAD' },
    { method: 'POST', path: '/healthz', on: 'shared', allow: 'GET, HEAD' },
  ] as const)('$method $path is 405 and allows $allow', async ({ method, path, on, allow }) => {
    const answer = await editor(method, path, { on })
    expect(codeOf(answer)).toBe('405 method_not_allowed')
    expect(answer.headers.allow).toBe(allow)
  })

  test('with an id of another tenant is 404 for every method', async () => {
    const { id: theirs } = await acme.instance()
    const other = await deployment.namespace()
    const path = `/v1/instances/${theirs}`
    const asked = [
      ['GET', path, undefined],
      ['PATCH', path, { isEnabled: false }],
      ['DELETE', path, undefined],
      ['POST', `${path}/password`, undefined],
      ['POST', `${path}/reset`, undefined],
    ] as const
    for (const [method, at, body] of asked) {
      const refused = await other.as('admin')(method, at, { body })
      expect([at, codeOf(refused)]).toEqual([at, '404 not_found'])
      const unknown = await other.as('admin')(method, at.replace(theirs, crypto.randomUUID()), { body })
      expect(unknown.body.msg).toBe(refused.body.msg)
    }
    const copy = await other.as('admin')('POST', '/v1/instances', { body: deployment.instanceBody({ template: theirs }) })
    expect([codeOf(copy), fieldsOf(copy)]).toEqual(['400 invalid_request', ['template']])
    expect((await other.as('admin')('GET', '/v1/instances')).body.data.instances).toEqual([])
    expect((await editor('GET', path)).body.data.instance.isEnabled).toBe(true)
  })
})

describe('X-Request-Id', () => {
  test('is the value of the request if it is valid, else a new one', async () => {
    const given = await editor('GET', '/v1/me', { headers: { 'X-Request-Id': 'build-7:42' } })
    expect(given.headers['x-request-id']).toBe('build-7:42')
    const odd = await editor('GET', '/v1/nothing', { headers: { 'X-Request-Id': 'a b"<script>' } })
    expect(odd.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
    expect(odd.body.error.requestId).toBe(odd.headers['x-request-id'])
  })

  test.each(['/healthz', '/readyz', '/openapi.json', '/docs', '/.well-known/jwks.json', '/docs/swagger-ui.css'])(
    'is a header of the answer of %s, too',
    async (path) => {
      expect((await deployment.page(path)).headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
    },
  )
})

test('an answer must not be cached or sniffed, and does not name the framework', async () => {
  const { headers } = await editor('GET', '/v1/me')
  expect(headers['cache-control']).toBe('no-store')
  expect(headers['x-content-type-options']).toBe('nosniff')
  expect(headers['x-powered-by']).toBeUndefined()
})

describe('an error before routing has the same form as any other error', () => {
  /** Sends raw bytes. Resolves with everything received when the connection is closed. */
  async function send(bytes: string): Promise<string> {
    const { sharedUrl, ca } = deployment.installation
    const { hostname: host, port } = new URL(sharedUrl)
    const socket = connect({ host, port: Number(port), ca, servername: isIP(host) === 0 ? host : '' })
    socket.write(bytes)
    return text(socket)
  }

  test.each([
    { what: 'HTTP/1.1 without Host', bytes: 'GET /healthz HTTP/1.1\r\n\r\n', is: '400 invalid_request' },
    {
      what: 'an unknown Expect',
      bytes: 'GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: foo\r\n\r\n',
      is: '417 invalid_request',
    },
    { what: 'CONNECT', bytes: 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n', is: '405 method_not_allowed' },
    { what: 'a NUL in the target', bytes: 'GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n', is: '400 invalid_request' },
  ])('$what', async ({ bytes, is }) => {
    const [head = '', body = ''] = (await send(bytes)).split('\r\n\r\n')
    const { error } = JSON.parse(body) as { error: { code: string; requestId: string } }
    expect(`${head.split(' ')[1]} ${error.code}`).toBe(is)
    expect(/\r\nX-Request-Id: (.+)/i.exec(head)?.[1]).toBe(error.requestId)
  })
})
