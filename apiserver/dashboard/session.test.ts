import { expect, test } from 'vitest'
import { UnsecuredJWT } from 'jose'
import { createDashboardSessions, END_OF_SESSION, SESSION_COOKIE } from './session.ts'
import type { SignedOut } from './signed-out.ts'

const SECRET = new Uint8Array(32).fill(7)
const NOW = Date.UTC(2026, 0, 1)
const HOUR = 3_600_000
const ended = new Set<string>()
const signedOut: SignedOut = { has: async (id) => ended.has(id), add: async (id) => void ended.add(id) }
const sessionsAt = (ms: number, secret = SECRET) => createDashboardSessions({ secret, signedOut, now: () => new Date(ms) })
const API_TOKEN = 'moor_abc'
/** Returns a token as an issuer would make it; its signature does not matter here. */
const jwt = (expiresAt: number) => new UnsecuredJWT({}).setExpirationTime(expiresAt / 1e3).encode()

/** Returns the header `Cookie` that a browser makes of a `Set-Cookie`. */
const sent = (setCookie: string): string => setCookie.replace(/;.*/, '')

test('a session cookie gives its token to every replica with the same secret', async () => {
  const cookie = await sessionsAt(NOW).begin(API_TOKEN)
  expect(cookie).not.toContain(API_TOKEN)
  expect(cookie).toMatch(/; Path=\/; HttpOnly; Secure; SameSite=Strict; Max-Age=43200$/)
  expect(await sessionsAt(NOW + HOUR).tokenOf(`theme=dark; ${sent(cookie)}`)).toBe(API_TOKEN)
})

test('two sessions of one token have different cookies', async () => {
  const sessions = sessionsAt(NOW)
  expect(await sessions.begin(API_TOKEN)).not.toBe(await sessions.begin(API_TOKEN))
})

test.each([
  ['ends after twelve hours', API_TOKEN, 12 * HOUR],
  ['ends with a token that expires earlier', jwt(NOW + HOUR), HOUR],
])('a session %s', async (_does, token, durationMs) => {
  const cookie = sent(await sessionsAt(NOW).begin(token))
  expect(await sessionsAt(NOW + durationMs - 1_000).tokenOf(cookie)).toBe(token)
  expect(await sessionsAt(NOW + durationMs + 1_000).tokenOf(cookie)).toBeUndefined()
})

test('other cookies give no token', async () => {
  const cookie = sent(await sessionsAt(NOW).begin(API_TOKEN))
  const foreign = sent(await sessionsAt(NOW, new Uint8Array(32).fill(8)).begin(API_TOKEN))
  const changed = cookie.replace(/.(?=.{9}$)/, (char) => (char === 'A' ? 'B' : 'A'))
  const unsecured = `${SESSION_COOKIE}=${new UnsecuredJWT({ token: API_TOKEN }).setExpirationTime('1h').encode()}`
  for (const header of [undefined, '', 'theme=dark', sent(END_OF_SESSION), foreign, changed, unsecured, `x${cookie}`]) {
    expect(await sessionsAt(NOW).tokenOf(header), header).toBeUndefined()
  }
})

test('a session that has signed out gives no token, and the others of its token do', async () => {
  const sessions = sessionsAt(NOW)
  const [one, two] = [sent(await sessions.begin(API_TOKEN)), sent(await sessions.begin(API_TOKEN))]
  await sessions.end(one)
  expect([await sessionsAt(NOW).tokenOf(one), await sessionsAt(NOW).tokenOf(two)]).toEqual([undefined, API_TOKEN])
  await sessions.end(undefined)
  expect(ended.size).toBe(1)
})

test('two session cookies give no token', async () => {
  const sessions = sessionsAt(NOW)
  const [own, planted] = [sent(await sessions.begin(API_TOKEN)), sent(await sessions.begin('moor_other'))]
  expect(await sessions.tokenOf(`${own}; ${planted}`)).toBeUndefined()
})

test('a token that fits into no cookie is rejected by name', async () => {
  const begun = sessionsAt(NOW).begin(`moor_${'a'.repeat(2_800)}`)
  await expect(begun).rejects.toMatchObject({ code: 'invalid_request', details: [{ field: 'token' }] })
  expect((await sessionsAt(NOW).begin(`moor_${'a'.repeat(2_795)}`)).length).toBeLessThan(4_096)
})
