import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { MooringError } from '../../shared/errors.ts'
import { StoreError } from '../../store/port.ts'
import { fieldsOf, serveRoutes, ok, on, toys } from '../../test/support/api/http-app.ts'
import { createRequestLimiters } from './app.ts'
import { ApiError } from './errors.ts'
import { createOpenRoutes } from '../api.ts'
import { DEFAULT_LIMITS } from './rate-limit.ts'
import { type AnyRoute, route } from './route.ts'

/** A route that throws. */
const failing = (error: unknown): AnyRoute =>
  route({
    ...{ method: 'get', path: '/v1/fail', on, id: 'fail', summary: '', replies: ok },
    handle: async () => {
      throw error
    },
  })

const token = 'alice'

describe('an answer', () => {
  test('has the envelope, the ETag, the security headers and a request id', async () => {
    await using app = await serveRoutes(toys)
    const { status, headers, body } = await app.call('GET', '/v1/toys?color=red', { token })
    expect(status).toBe(200)
    expect(body).toMatchObject({ msg: 'OK', data: { query: { color: 'red' } } })
    expect(headers.get('etag')).toBe('"42"')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-powered-by')).toBeNull()
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  })

  test.each([
    { does: 'takes a sane request id over', given: 'ci-run.42:7', taken: true },
    { does: 'replaces one with blanks', given: 'a b', taken: false },
    { does: 'replaces one that is too long', given: 'x'.repeat(129), taken: false },
  ])('$does', async ({ given, taken }) => {
    await using app = await serveRoutes(toys)
    const { headers } = await app.call('GET', '/v1/nothing', { headers: { 'x-request-id': given } })
    expect(headers.get('x-request-id') === given).toBe(taken)
  })

  test('to HEAD has only the headers', async () => {
    await using app = await serveRoutes(toys)
    const response = await fetch(`${app.url}/v1/toys`, { method: 'HEAD', headers: { authorization: 'Bearer alice' } })
    expect(response.status).toBe(200)
    expect(await response.text()).toBe('')
  })

  test('has the headers that a handler sets', async () => {
    await using app = await serveRoutes(toys)
    const headers = { 'idempotency-key': 'k1', 'if-match': '"7"', 'mooring-namespace': 'acme/prod' }
    const { body } = await app.call('POST', '/v1/toys', { token, headers, body: { name: 'x' } })
    expect(body.data).toMatchObject({ idempotencyKey: 'k1', ifMatch: ['7'], namespaceHeader: 'acme/prod' })
  })
})

test('the reason of a write that the store rejected is only in the log', async () => {
  const why = 'admission webhook "quota.corp.internal" denied the request'
  await using app = await serveRoutes([failing(new StoreError('forbidden', 'not allowed', { cause: new Error(why) }))])
  const answer = await app.call('GET', '/v1/fail', { token })
  expect(answer).toMatchObject({ status: 403, body: { msg: 'not allowed' } })
  expect(JSON.stringify(answer.body)).not.toContain('corp.internal')
  expect(JSON.stringify(app.lines)).toContain('quota.corp.internal')
})

describe('an error of a handler becomes', () => {
  test.each<{ status: number; code: string; error: Error; msg?: string }>([
    {
      status: 409,
      code: 'conflict',
      error: new StoreError('conflict', 'i-7f3a has changed'),
      msg: 'another request changed the resource meanwhile; read it again, then repeat the change',
    },
    {
      status: 409,
      code: 'conflict',
      error: new StoreError('already_exists', 'SharedInstance i-7f3a exists already'),
      msg: 'the resource exists already',
    },
    {
      status: 404,
      code: 'not_found',
      error: new StoreError('not_found', 'SharedInstance i-7f3a does not exist'),
      msg: 'the resource no longer exists',
    },
    { status: 403, code: 'forbidden', error: new StoreError('forbidden', 'no') },
    { status: 403, code: 'forbidden', error: new MooringError('forbidden', 'not for you') },
    {
      status: 503,
      code: 'unavailable',
      error: new StoreError('unavailable', 'the state in /data cannot be written'),
      msg: 'the storage is unavailable; retry in 2 s',
    },
    { status: 422, code: 'unknown_region', error: new ApiError('unknown_region', 'unknown region: 42') },
  ])('$status $code', async ({ status, code, error, msg = error.message }) => {
    await using app = await serveRoutes([failing(error)])
    const answer = await app.call('GET', '/v1/fail', { token })
    expect({ status: answer.status, code: answer.body.error?.code, msg: answer.body.msg }).toEqual({
      status,
      code,
      msg,
    })
    expect(answer.headers.has('retry-after')).toBe(status === 503)
  })

  test('400 with the API names of the fields', async () => {
    const fields = [{ field: 'spec.identifier', message: 'must be short' }]
    await using app = await serveRoutes([failing(new StoreError('invalid', 'invalid', { fields }))])
    expect(fieldsOf(await app.call('GET', '/v1/fail', { token }))).toEqual(['identifier'])
  })

  test.each([new Error('password is hunter2'), new TypeError('hunter2'), 'hunter2', null])(
    '500 without the inner text, which is logged with the request id (%s)',
    async (error) => {
      await using app = await serveRoutes([failing(error)])
      const answer = await app.call('GET', '/v1/fail', { token })
      expect(answer.status).toBe(500)
      expect(JSON.stringify(answer.body)).not.toContain('hunter2')
      const logged = app.lines.find(({ msg }) => msg === 'a request failed')
      expect(logged?.requestId).toBe(answer.headers.get('x-request-id'))
    },
  )
})

describe('a caller', () => {
  test.each<{ does: string; headers: Record<string, string>; query?: string }>([
    { does: 'without a token', headers: {} },
    { does: 'with a token in the query', headers: {}, query: '?access_token=alice' },
    { does: 'with basic authentication', headers: { authorization: 'Basic YTpi' } },
    { does: 'with two tokens', headers: { authorization: 'Bearer a b' } },
    { does: 'with a bad token', headers: { authorization: 'Bearer bad' } },
    { does: 'with an endless token', headers: { authorization: `Bearer ${'x'.repeat(9_000)}` } },
  ])('$does is unauthenticated', async ({ headers, query = '' }) => {
    await using app = await serveRoutes(toys)
    const answer = await app.call('GET', `/v1/toys${query}`, { headers })
    expect({ status: answer.status, code: answer.body.error?.code }).toEqual({ status: 401, code: 'unauthenticated' })
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  })

  test('is limited after 20 failures in a minute, and a valid token still works', async () => {
    await using app = await serveRoutes(toys)
    const statuses: number[] = []
    for (let at = 0; at < 22; at++) statuses.push((await app.call('GET', '/v1/toys', { token: 'bad' })).status)
    expect(statuses).toEqual([...Array.from({ length: 20 }, () => 401), 429, 429])
    const refused = await app.call('GET', '/v1/toys', { token: 'bad' })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await app.call('GET', '/v1/toys', { token })).status).toBe(200)
  })

  test('gets the limits in headers, and 429 past the burst', async () => {
    const limiters = createRequestLimiters({ ...DEFAULT_LIMITS, writeRate: 1, writeBurst: 2 })
    await using app = await serveRoutes(toys, { limiters })
    const post = () => app.call('POST', '/v1/toys', { token, body: { name: 'x' } })
    const answers = await Promise.all([post(), post(), post(), post()])
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(0)
    for (const { headers, body } of refused) {
      expect(body.error?.code).toBe('rate_limited')
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
      expect(headers.get('ratelimit-remaining')).toBe('0')
    }
    expect(answers[0].headers.get('ratelimit-limit')).toBe('2')
    expect((await app.call('GET', '/v1/toys', { token })).status).toBe(200)
    expect((await app.call('POST', '/v1/toys', { token: 'bob', body: { name: 'x' } })).status).toBe(200)
  })
})

describe('an open route', () => {
  test('needs no token, but accepts only its method', async () => {
    await using app = await serveRoutes(toys, { open: createOpenRoutes({ isReady: () => false }) })
    expect((await app.call('GET', '/healthz')).status).toBe(200)
    expect((await app.call('GET', '/readyz')).status).toBe(503)
    expect((await app.call('POST', '/healthz')).headers.get('allow')).toBe('GET, HEAD')
    expect((await app.call('GET', '/.well-known/jwks.json')).status).toBe(404)
  })
})

describe('the log', () => {
  test('has the template, the user and the request id, and no input of the caller', async () => {
    await using app = await serveRoutes(toys)
    const secret = 's3cr3t'
    const headers = { 'x-secret': secret, 'idempotency-key': secret }
    await app.call('PATCH', `/v1/toys/${secret}?${secret}=${secret}`, { token, headers, body: { name: secret } })
    await app.call('GET', '/v1/toys', { token: 'bad' })
    const line = app.lines.find(({ msg, method }) => msg === 'request' && method === 'PATCH')
    expect(line).toMatchObject({ route: '/v1/toys/{id}', status: 400, user: 'local:alice' })
    expect(line?.requestId).toBeTypeOf('string')
    expect(JSON.stringify(app.lines)).not.toContain(secret)
    expect(JSON.stringify(app.lines)).not.toContain('Bearer')
  })

  test('and the metrics record a caller that disconnected', async () => {
    const reached = Promise.withResolvers<undefined>()
    const release = Promise.withResolvers<undefined>()
    const slow = route({
      ...{ method: 'get', path: '/v1/slow', on, id: 'slow', summary: '', replies: ok },
      handle: async () => {
        reached.resolve(undefined)
        await release.promise
        return { status: 200, data: {} }
      },
    })
    await using app = await serveRoutes([slow])
    const sent = request(`${app.url}/v1/slow`, { headers: { authorization: 'Bearer alice' } }).on('error', () => undefined)
    sent.end()
    await reached.promise
    sent.destroy()
    await expect.poll(() => app.lines.find(({ msg }) => msg === 'request')).toMatchObject({ aborted: true })
    release.resolve(undefined)
  })
})

describe('the metrics', () => {
  test('count by route template, never by path', async () => {
    await using app = await serveRoutes(toys)
    await app.call('PATCH', '/v1/toys/17', { token, body: {} })
    await app.call('GET', '/v1/nope/17')
    await app.call('GET', '/v1/toys', { token: 'bad' })
    const text = await app.metrics.registry.metrics()
    expect(text).toContain('mooring_http_requests_total{listener="shared",method="PATCH",route="/v1/toys/{id}",status="200"} 1')
    expect(text).toContain('route="unmatched",status="404"} 1')
    expect(text).toContain('mooring_auth_failures_total{reason="invalid"} 1')
    expect(text).toContain('mooring_event_loop_delay_seconds{statistic="p99"}')
    expect(text).not.toContain('toys/17')
  })
})
