import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { codeOf, fieldsOf, serveRoutes, ok, on, toys } from '../../test/support/api/http-app.ts'
import { route } from './route.ts'

const KIB_64 = 65_536
const token = 'alice'
const bodyOf = (bytes: number) => JSON.stringify({ name: 'x'.repeat(bytes - '{"name":""}'.length) })

describe('an invalid request is answered', () => {
  const json = 'application/json'
  const get = { method: 'GET' }
  const post = (body: unknown, headers: Record<string, string> = {}) => ({ method: 'POST', path: '/v1/toys', body, headers })
  const typed = (type: string, body = '{}') => post(body, { 'content-type': type })
  const keyed = (key: string) => post({ name: 'x' }, { 'idempotency-key': key })
  const patch = (path: string, headers = {}) => ({ method: 'PATCH', path, body: {}, headers })

  test.each([
    { for: 'an unknown path', is: '404 not_found', ...get, path: '/v1/nope' },
    { for: 'a path of the other listener', is: '404 not_found', ...get, path: '/v1/elsewhere' },
    { for: 'a trailing slash', is: '404 not_found', ...get, path: '/v1/toys/' },
    { for: 'another method', is: '405 method_not_allowed', method: 'DELETE', path: '/v1/toys' },
    { for: 'OPTIONS', is: '405 method_not_allowed', method: 'OPTIONS', path: '/v1/toys' },
    { for: 'broken JSON', is: '400 invalid_json', ...post('{"name":') },
    { for: 'an array', is: '400 invalid_request', ...post('[]') },
    { for: 'null', is: '400 invalid_request', ...post('null') },
    { for: 'a number', is: '400 invalid_request', ...post('7') },
    { for: 'nesting without end', is: '400 invalid_json', ...post('['.repeat(60_000)) },
    { for: 'bytes that are not UTF-8', is: '400 invalid_json', ...post(new Uint8Array([0xff, 0x7b])) },
    { for: 'no body where one belongs', is: '400 invalid_json', ...post(undefined, { 'content-type': json }) },
    { for: 'a body of 64 KiB + 1', is: '413 too_large', ...post(bodyOf(KIB_64 + 1)) },
    { for: 'a huge body', is: '413 too_large', ...post(bodyOf(5_000_000)) },
    { for: 'text', is: '415 unsupported_media_type', ...typed('text/plain') },
    { for: 'a form', is: '415 unsupported_media_type', ...typed('application/x-www-form-urlencoded', 'name=x') },
    { for: 'another charset', is: '415 unsupported_media_type', ...typed(`${json}; charset=utf-16`) },
    { for: 'merge patch in a POST', is: '415 unsupported_media_type', ...typed('application/merge-patch+json') },
    { for: 'a compressed body', is: '415 unsupported_media_type', ...post('{}', { 'content-encoding': 'gzip' }) },
    { for: 'an encoded NUL in the path', is: '400 invalid_request', ...patch('/v1/toys/a%00b') },
    { for: 'bad percent-encoding in the path', is: '400 invalid_request', ...patch('/v1/toys/%E0%A4%A') },
    { for: 'bad percent-encoding in the query', is: '400 invalid_request', ...get, path: '/v1/toys?color=%zz' },
    { for: 'an over-long URL', is: '400 invalid_request', ...get, path: `/v1/toys?color=${'x'.repeat(9_000)}` },
    { for: 'an Idempotency-Key with blanks', is: '400 invalid_request', ...keyed('a b') },
    { for: 'a long Idempotency-Key', is: '400 invalid_request', ...keyed('x'.repeat(256)) },
    { for: 'an If-Match that is no tag', is: '400 invalid_request', ...patch('/v1/toys/1', { 'if-match': 'W/1' }) },
  ])('with $is for $for', async ({ method, path, is, ...options }) => {
    await using app = await serveRoutes(toys)
    const answer = await app.call(method, path, { token, ...options })
    expect(codeOf(answer)).toBe(is)
    expect(answer.body.msg).not.toBe('OK')
    expect(answer.body.error?.requestId).toBe(answer.headers.get('x-request-id'))
  })

  test('with all invalid and unknown fields and parameters at once', async () => {
    await using app = await serveRoutes(toys)
    const body = { size: 'big', colour: 'red', tags: [{ key: 'a', extra: 1 }] }
    const answer = await app.call('POST', '/v1/toys?page=2', { token, body })
    expect(answer.status).toBe(400)
    expect(fieldsOf(answer)?.toSorted()).toEqual(['colour', 'name', 'page', 'size', 'tags[0].extra'])
  })

  test.each(['[]', 'null', '7', '"name"', 'true'])('naming the body and its rule, for %s', async (body) => {
    await using app = await serveRoutes(toys)
    const answer = await app.call('POST', '/v1/toys', { token, body })
    expect(answer.body.error?.details).toEqual([{ field: 'body', message: 'must be a JSON object' }])
  })

  test.each([
    { path: '/v1/toys/%E0%A4%A', details: [{ field: 'path', message: 'is not valid percent-encoded UTF-8' }] },
    { path: `/v1/toys/${'x'.repeat(9_000)}`, details: [{ field: 'url', message: 'is longer than 8192 characters' }] },
  ])('naming $details', async ({ path, details }) => {
    await using app = await serveRoutes(toys)
    const answer = await app.call('PATCH', path, { token, body: {} })
    expect([codeOf(answer), answer.body.error?.details]).toEqual(['400 invalid_request', details])
  })

  test('naming a duplicate query parameter', async () => {
    await using app = await serveRoutes(toys)
    const answer = await app.call('GET', '/v1/toys?color=a&color=b', { token })
    expect(fieldsOf(answer)).toEqual(['color'])
  })

  test('naming __proto__, which JSON.parse returns as an ordinary field', async () => {
    await using app = await serveRoutes(toys)
    const answer = await app.call('POST', '/v1/toys', { token, body: '{"name":"x","__proto__":{"size":1}}' })
    expect(fieldsOf(answer)).toEqual(['__proto__'])
  })

  test('with Allow, which includes HEAD', async () => {
    await using app = await serveRoutes(toys)
    expect((await app.call('PUT', '/v1/toys')).headers.get('allow')).toBe('GET, HEAD, POST')
  })

  test('in JSON even when the HTTP parser rejects it', async () => {
    await using app = await serveRoutes(toys)
    const malformed = await app.raw('GET /v1/to\0ys HTTP/1.1\r\nHost: x\r\n\r\n')
    expect(malformed).toMatch(/^HTTP\/1\.1 400 /)
    expect(malformed).toMatch(/X-Request-Id: [0-9a-f-]{36}\r\n/)
    expect(malformed).toMatch(/\r\n\r\n\{"msg":"[^"]+","error":\{"code":"invalid_request"/)
    const tooMuch = await app.raw(`GET /v1/toys HTTP/1.1\r\nHost: x\r\nX-Big: ${'x'.repeat(20_000)}\r\n\r\n`)
    expect(tooMuch).toMatch(/^HTTP\/1\.1 431 /)
  })
})

const cut = route({
  ...{ method: 'delete', path: '/v1/toys/{id}', on, id: 'cutToy', summary: '', replies: ok },
  params: z.object({ id: z.string() }),
  handle: async () => ({ status: 200, data: {} }),
})

describe('a DELETE', () => {
  test.each<{ with: string; is: string; body?: unknown; headers?: Record<string, string> }>([
    { with: 'nothing', is: '200 OK' },
    { with: 'a type alone', is: '200 OK', headers: { 'content-type': 'application/json' } },
    { with: 'another type alone', is: '200 OK', headers: { 'content-type': 'text/plain' } },
    { with: 'no bytes', is: '200 OK', body: '' },
    { with: 'an empty object', is: '200 OK', body: {} },
    { with: 'an unknown field', is: '400 invalid_request', body: { force: true } },
    { with: 'an array', is: '400 invalid_request', body: [] },
    { with: 'broken JSON', is: '400 invalid_json', body: '{' },
    { with: 'text', is: '415 unsupported_media_type', body: 'x', headers: { 'content-type': 'text/plain' } },
    { with: 'a huge body', is: '413 too_large', body: bodyOf(KIB_64 + 1) },
  ])('with $with is $is', async ({ is, body, headers = {} }) => {
    await using app = await serveRoutes([cut])
    expect(codeOf(await app.call('DELETE', '/v1/toys/1', { token, body, headers }))).toBe(is)
  })
})

describe('a body', () => {
  test.each([
    { does: 'of exactly 64 KiB is taken', size: KIB_64, status: 200 },
    { does: 'of one byte more is not', size: KIB_64 + 1, status: 413 },
  ])('sent in chunks $does', async ({ size, status }) => {
    await using app = await serveRoutes(toys)
    const text = bodyOf(size)
    const headers = { authorization: 'Bearer alice', 'content-type': 'application/json' }
    expect(await app.chunked('/v1/toys', [text.slice(0, 1000), text.slice(1000)], headers)).toBe(status)
  })

  test('of exactly 64 KiB with a length is accepted', async () => {
    await using app = await serveRoutes(toys)
    expect((await app.call('POST', '/v1/toys', { token, body: bodyOf(KIB_64) })).status).toBe(200)
  })

  test.each(['application/json', 'application/merge-patch+json', 'application/json; charset=UTF-8'])(
    'of a PATCH may be %s',
    async (type) => {
      await using app = await serveRoutes(toys)
      const answer = await app.call('PATCH', '/v1/toys/1', { token, headers: { 'content-type': type }, body: { size: 3 } })
      expect(answer.body.data).toMatchObject({ params: { id: '1' }, body: { size: 3 } })
    },
  )

  test('may be absent or an empty object on a route without a body', async () => {
    await using app = await serveRoutes(toys)
    expect((await app.call('POST', '/v1/toys/1/wash', { token })).status).toBe(200)
    expect((await app.call('POST', '/v1/toys/1/wash', { token, body: {} })).status).toBe(200)
    expect((await app.call('POST', '/v1/toys/1/wash', { token, body: { hot: true } })).status).toBe(400)
  })

  test('that is too large leaves the connection usable', async () => {
    await using app = await serveRoutes(toys)
    const big = bodyOf(KIB_64 + 1)
    const head = (length: number) =>
      `POST /v1/toys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n`
    const answers = await app.raw(`${head(big.length)}\r\n${big}${head(12)}Connection: close\r\n\r\n{"name":"x"}`)
    expect([...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['413', '200'])
  })
})
