import { expect, test } from 'vitest'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AnyRoute, Listener } from './route.ts'
import { respondStarting, createUnknownPath } from './default-responses.ts'

const route = (path: string, ...on: Listener[]): AnyRoute => ({
  ...{ method: 'get', path, on, id: 'x', summary: '', replies: {} },
  handle: () => expect.fail('is not called'),
})
const routes = [
  route('/v1/instances', 'shared'),
  route('/v1/instances/{id}', 'shared'),
  route('/v1/instances/{id}/password', 'shared'),
  route('/v1/organizations/{organization}/namespaces', 'shared', 'dedicated'),
  route('/v1/databases/create/metadata', 'dedicated'),
  route('/v1/engines', 'dedicated'),
]
const nearest = (path: string) => `unknown path; the nearest one is ${path}`
const none = 'unknown path; GET /openapi.json lists all paths'
const dedicated =
  'this path is served by the dedicated API, on another port: 8444 by default (MOORING_DEDICATED_URL of an embedded Mooring)'

test.each<[string, string]>([
  ['/v1/instance', nearest('/v1/instances')],
  ['/v1/instances/', nearest('/v1/instances')],
  ['/V1/Instances', nearest('/v1/instances')],
  ['/v1/instances/x/passwords', nearest('/v1/instances/{id}/password')],
  ['/v1/organisations/acme/namespaces', nearest('/v1/organizations/{organization}/namespaces')],
  ['/openapi.yaml', none],
  ['/openapi.jsn', nearest('/openapi.json')],
  ['/doc', nearest('/docs')],
  ['/v1/databases', dedicated],
  ['/v1/databases/7', dedicated],
  ['/v1/engines', dedicated],
  ['/v1/engine', `${nearest('/v1/engines')} of the dedicated API`],
  ['/wp-admin/setup.php', none],
  ['/', none],
  ['/v1/instances/x/y/z/nothing', none],
  [`/${'a'.repeat(8_000)}`, none],
  ['/'.repeat(8_000), none],
])('%s: %s', (path, is) => {
  expect(createUnknownPath(routes, 'shared')(path)).toBe(is)
})

test('the dedicated API names the shared one', () => {
  expect(createUnknownPath(routes, 'dedicated')('/v1/instances')).toBe(
    'this path is served by the shared API, on another port: 8443 of an embedded Mooring by default (MOORING_URL), 443 in a cluster',
  )
})

test('respondStarting answers 503 in the form of all errors', async () => {
  const server = createServer(respondStarting).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/me`
    const answer = await fetch(url, { headers: { 'X-Request-Id': 'early-1', Connection: 'close' } })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(answer.headers.get('x-request-id')).toBe('early-1')
    expect(await answer.json()).toEqual({
      msg: expect.stringContaining('starting') as string,
      error: { code: 'unavailable', details: [], requestId: 'early-1' },
    })
  } finally {
    server.close()
    await once(server, 'close')
  }
})
