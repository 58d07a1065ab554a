import { expect, test } from 'vitest'
import { addressList } from '../crds/formats/address-list.ts'
import { TunnelConfig } from '../crds/tunnel-config.ts'
import {
  explain,
  firstRejection,
  LOGIN_CHECKS,
  type ObservedLogin,
  REQUEST_CHECKS,
  type ObservedRequest,
  type Upstream,
} from './tunnel-decisions.ts'

const tunnelWith = (config: Partial<TunnelConfig>) => {
  const whole = TunnelConfig.parse(config)
  return { config: whole, ingress: addressList(whole.ingressIPWhitelist), sshSources: addressList(whole.sshIPWhitelist) }
}
const open: ObservedRequest = {
  ...{
    malformed: undefined,
    scheme: 'https',
    serverName: 'a.test',
    host: 'a.test',
    method: 'GET',
    path: '/',
    sourceIp: '192.0.2.1',
  },
  ...{ challengeKnown: false, tunnel: tunnelWith({}), overload: 'none', upstream: 'unknown' },
}
const malformed = { status: 400, reason: 'bad_request', detail: 'no' } as const

/** Requests that each break one more check than the one before, from the last check to the first. The earliest check decides. */
const ladder: readonly (readonly [string, Partial<ObservedRequest>, number])[] = [
  ['upstream_timeout', { upstream: 'timeout' }, 504],
  ['overloaded', { overload: 'edge' }, 503],
  ['overloaded', { overload: 'tunnel' }, 429],
  ['cors_preflight', { method: 'OPTIONS', tunnel: tunnelWith({ allowCorsPreflight: true }) }, 204],
  ['https_only', { scheme: 'http', tunnel: tunnelWith({ allowCorsPreflight: true, httpsOnly: true }) }, 301],
  ['ip_denied', { tunnel: tunnelWith({ allowCorsPreflight: true, httpsOnly: true, ingressIPWhitelist: ['203.0.113.1'] }) }, 403],
  ['unknown_host', { tunnel: undefined }, 404],
  ['acme_challenge', { challengeKnown: true }, 200],
  ['misdirected', { scheme: 'https', serverName: 'b.test' }, 421],
  ['bad_request', { malformed }, 400],
]

test('the first check that rejects a request decides, whatever later checks find', () => {
  let observed = open
  for (const [reason, wrong, status] of ladder) {
    observed = { ...observed, ...wrong }
    expect(firstRejection(REQUEST_CHECKS, observed)).toMatchObject({ reason, status })
  }
})

test.each<[Upstream, number, string]>([
  ['offline', 503, 'tunnel_offline'],
  ['refused', 502, 'upstream_refused'],
  ['reset', 502, 'upstream_reset'],
  ['lost', 502, 'upstream_reset'],
  ['timeout', 504, 'upstream_timeout'],
])('the upstream result %s is answered with %i %s', (upstream, status, reason) => {
  expect(firstRejection(REQUEST_CHECKS, { ...open, upstream })).toMatchObject({ status, reason })
})

test('the explanation of a request that passes lists every check', () => {
  const { steps, answer } = explain(REQUEST_CHECKS, open)
  expect(steps.map(({ check }) => check)).toEqual(REQUEST_CHECKS.map(({ name }) => name))
  expect(steps.every(({ verdict, detail }) => verdict === 'pass' && detail !== '')).toBe(true)
  expect(answer).toEqual({ status: null, reason: null })
})

test('an explanation ends with the check that rejects', () => {
  const { steps, answer } = explain(REQUEST_CHECKS, { ...open, tunnel: tunnelWith({ ingressIPWhitelist: ['203.0.113.0/24'] }) })
  expect(steps.at(-1)).toMatchObject({ check: 'ingress', verdict: 'stop' })
  expect(answer).toEqual({ status: 403, reason: 'ip_denied' })
})

const key = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA${'A'.repeat(42)}`
const login: ObservedLogin = {
  ...{ tunnel: tunnelWith({ authorizedKeys: [key] }), sourceIp: '192.0.2.1', authMethod: 'key' },
  ...{ livePasswords: 1, sessions: 0, maxSessions: 10 },
}

test.each<[string, Partial<ObservedLogin>, string | null]>([
  ['a key passes to the verification', {}, null],
  ['a password passes to the verification', { authMethod: 'token' }, null],
  ['no tunnel', { tunnel: undefined }, 'unknown_host'],
  ['an address outside the list', { tunnel: tunnelWith({ sshIPWhitelist: ['203.0.113.1'] }) }, 'ip_denied'],
  ['a password where authMode is key', { authMethod: 'token', tunnel: tunnelWith({ authMode: 'key' }) }, 'auth_mode'],
  ['a key where authMode is token', { tunnel: tunnelWith({ authMode: 'token' }) }, 'auth_mode'],
  ['a key where none is authorized', { tunnel: tunnelWith({}) }, 'no_credential'],
  ['a password where none is valid', { authMethod: 'token', livePasswords: 0 }, 'no_credential'],
  ['one session too many', { sessions: 10 }, 'too_many_sessions'],
])('a login: %s', (_does, wrong, reason) => {
  expect(explain(LOGIN_CHECKS, { ...login, ...wrong }).answer).toEqual({ status: null, reason })
})
