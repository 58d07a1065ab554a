import { describe, expect, test } from 'vitest'
import { codeOf, ok, serveRoutes, type ToyApp } from '../../test/support/api/http-app.ts'
import { type AnyRoute, route } from '../http/route.ts'
import { createDashboard } from './dashboard.ts'
import { createDashboardSessions } from './session.ts'

/** The API behind `/dashboard/v1`, for pages of the dashboard alone. */

const declared = { summary: '', replies: ok, handle: async () => ({ status: 200 as const, data: {} }) }
const routes: readonly AnyRoute[] = [
  route({ ...declared, method: 'get', path: '/v1/tunnels', on: ['shared'], id: 'listTunnels' }),
  route({ ...declared, method: 'get', path: '/v1/databases', on: ['dedicated'], id: 'listDatabases' }),
  route({ ...declared, method: 'post', path: '/v1/databases', on: ['dedicated'], id: 'createDatabase' }),
]
const signedOut = { has: async () => false, add: async () => undefined }
const sessions = createDashboardSessions({ secret: Buffer.alloc(32, 7), signedOut, now: () => new Date() })

/** Serves the routes on the shared listener, with the dashboard. The token is the name of the user. */
const serve = (): Promise<ToyApp> => {
  const verify = async (user: string) => ({ user, groups: [] })
  const verifiers = { verifyJwt: verify, verifyApiToken: verify }
  const open = createDashboard({ ...verifiers, files: undefined, sessions, countFailure: async () => undefined })
  return serveRoutes(routes, { ...verifiers, open })
}

/** Headers that a page of the dashboard sends. */
async function pageHeaders({ url }: ToyApp) {
  const cookie = (await sessions.begin('moor_alice')).replace(/;.*/, '')
  return { cookie, origin: url, 'sec-fetch-site': 'same-origin' }
}

describe('a page of the dashboard', () => {
  test.each(['/v1/tunnels', '/v1/databases'])('reads %s on the shared listener', async (path) => {
    await using app = await serve()
    expect(codeOf(await app.call('GET', `/dashboard${path}`, { headers: await pageHeaders(app) }))).toBe('200 OK')
  })

  test('of an earlier version reads at /dashboard/api/v1', async () => {
    await using app = await serve()
    expect(codeOf(await app.call('GET', '/dashboard/api/v1/tunnels', { headers: await pageHeaders(app) }))).toBe('200 OK')
  })

  test('receives 405 with the methods of a route of the dedicated listener, and 404 for an unknown path', async () => {
    await using app = await serve()
    const headers = await pageHeaders(app)
    const wrong = await app.call('DELETE', '/dashboard/v1/databases', { headers })
    expect([codeOf(wrong), wrong.headers.get('allow')]).toEqual(['405 method_not_allowed', 'GET, HEAD, POST'])
    expect(codeOf(await app.call('GET', '/dashboard/v1/unknown', { headers }))).toBe('404 not_found')
  })

  test.each([
    ['another origin', { origin: 'https://evil.example' }],
    ['an opaque origin', { origin: 'null' }],
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['another port', { 'sec-fetch-site': 'same-site' }],
  ])('cannot use a route of the dedicated listener from %s', async (_from, foreign) => {
    await using app = await serve()
    const headers = { ...(await pageHeaders(app)), ...foreign }
    expect(codeOf(await app.call('GET', '/dashboard/v1/databases', { headers }))).toBe('403 forbidden')
    expect(codeOf(await app.call('POST', '/dashboard/v1/databases', { headers }))).toBe('403 forbidden')
  })

  test('cannot change anything without the header Origin', async () => {
    await using app = await serve()
    const { cookie } = await pageHeaders(app)
    expect(codeOf(await app.call('POST', '/dashboard/v1/databases', { headers: { cookie } }))).toBe('403 forbidden')
  })
})

describe('a route of the dedicated listener on the shared one', () => {
  test('is 404 for a caller with a token, and for one with the cookie and a token', async () => {
    await using app = await serve()
    const token = 'moor_alice'
    expect(codeOf(await app.call('GET', '/v1/databases', { token }))).toBe('404 not_found')
    expect(codeOf(await app.call('GET', '/v1/databases', { token, headers: await pageHeaders(app) }))).toBe('404 not_found')
  })

  test('is 401 below /dashboard/v1 for a token without a session', async () => {
    await using app = await serve()
    expect(codeOf(await app.call('GET', '/dashboard/v1/databases', { token: 'moor_alice' }))).toBe('401 unauthenticated')
  })
})
