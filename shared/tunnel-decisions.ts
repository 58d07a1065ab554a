import type { AddressList } from '../crds/formats/address-list.ts'
import type { TunnelConfig } from '../crds/tunnel-config.ts'

/** Values of `Mooring-Error`, and of `reason` in the request log: why the edge itself answered a request, or why a request ended early. */
export const REQUEST_REASONS = [
  ...(['bad_request', 'head_too_large', 'unknown_transfer_coding', 'bad_expectation', 'too_slow', 'misdirected'] as const),
  ...(['acme_challenge', 'unknown_host', 'ip_denied', 'https_only', 'cors_preflight'] as const),
  ...(['overloaded', 'edge_stopping', 'tunnel_offline'] as const),
  ...(['upstream_refused', 'upstream_reset', 'upstream_invalid', 'upstream_timeout', 'visitor_gone'] as const),
] as const
export type RequestReason = (typeof REQUEST_REASONS)[number]

/** Response of the edge itself to a request, or rejection of an SSH login (docs/edge.md, "Errors of the edge"). */
export interface Rejection<Reason extends string = RequestReason> {
  /** HTTP status; 0 for an SSH login. */
  readonly status: number
  /** Code for `Mooring-Error` and for `reason` in the journal. */
  readonly reason: Reason
  /** Explanation for tenants. */
  readonly detail: string
}

/** Result of the attempt to reach the backend. `unknown`: no attempt yet. */
export type Upstream = 'unknown' | 'offline' | 'refused' | 'reset' | 'lost' | 'invalid' | 'timeout'

/** Observed state of a request: all input of the decisions about it. */
export interface ObservedRequest {
  /** Rejection of a request that is not valid HTTP. */
  readonly malformed: Rejection | undefined
  readonly scheme: 'http' | 'https'
  /** Server name of the TLS handshake (RFC 6066, section 3), in lower case. */
  readonly serverName: string | undefined
  /** Value of the Host header, in lower case, without the port. */
  readonly host: string
  readonly method: string
  /** Path of the request target, without the query. */
  readonly path: string
  readonly sourceIp: string
  /** Whether the request is for an ACME challenge of an order of this installation; others go to the backend. */
  readonly challengeKnown: boolean
  /** Tunnel that has the requested hostname. */
  readonly tunnel: { readonly config: TunnelConfig; readonly ingress: AddressList } | undefined
  /** Owner of the concurrency limit that is reached. */
  readonly overload: 'none' | 'tunnel' | 'edge'
  readonly upstream: Upstream
}

/** Step in an ordered list of checks. */
export interface Check<Observed, Reason extends string = RequestReason> {
  readonly name: string
  /** Returns the rejection, or undefined when the request passes to the next check. */
  reject(observed: Observed): Rejection<Reason> | undefined
  /** Returns the explanation for a request that passes. */
  passed(observed: Observed): string
}

/** Path prefix of HTTP challenges of a certificate authority (RFC 8555, section 8.3). */
export const CHALLENGE_PATH = '/.well-known/acme-challenge/'

/** Maximum length of a method in characters; the longest registered method has 17 (IANA, HTTP Method Registry). */
export const METHOD_MAX = 32
const LONG_METHOD: Rejection = {
  status: 400,
  reason: 'bad_request',
  detail: `the method is longer than ${METHOD_MAX} characters`,
}
const BAD_TARGET: Rejection = { status: 400, reason: 'bad_request', detail: 'the request target is not valid' }

/** Returns the rejection of a request with this method and a target in origin form. CONNECT needs a target in authority form (RFC 9112, section 3.2.3). */
export function methodRejection(method: string): Rejection | undefined {
  if (method.length > METHOD_MAX) return LONG_METHOD
  return method === 'CONNECT' ? BAD_TARGET : undefined
}

const MISDIRECTED: Rejection = {
  status: 421,
  reason: 'misdirected',
  detail: 'the TLS handshake named another host than the request',
}
const CHALLENGE: Rejection = {
  status: 200,
  reason: 'acme_challenge',
  detail: 'the edge answers the challenge of the certificate authority',
}
const UNKNOWN_HOST: Rejection = { status: 404, reason: 'unknown_host', detail: 'no tunnel has this hostname' }
const IP_DENIED: Rejection = { status: 403, reason: 'ip_denied', detail: 'the address is not in ingressIPWhitelist' }
const HTTPS_ONLY: Rejection = { status: 301, reason: 'https_only', detail: 'httpsOnly is set: the edge redirects to HTTPS' }
const PREFLIGHT: Rejection = {
  status: 204,
  reason: 'cors_preflight',
  detail: 'allowCorsPreflight is set: the edge answers OPTIONS itself',
}
const TUNNEL_BUSY: Rejection = { status: 429, reason: 'overloaded', detail: 'the tunnel has too many concurrent requests' }
const EDGE_BUSY: Rejection = { status: 503, reason: 'overloaded', detail: 'the edge has too many connections' }

/** Responses to requests that do not get a response from the backend. */
export const UPSTREAM_REJECTIONS: Readonly<Record<Exclude<Upstream, 'unknown'>, Rejection>> = {
  offline: { status: 503, reason: 'tunnel_offline', detail: 'no client is connected to this tunnel' },
  refused: { status: 502, reason: 'upstream_refused', detail: 'the client could not reach its target' },
  reset: { status: 502, reason: 'upstream_reset', detail: 'the target closed the connection before it sent a response' },
  lost: { status: 502, reason: 'upstream_reset', detail: 'the client was disconnected before its target sent a response' },
  invalid: { status: 502, reason: 'upstream_invalid', detail: 'the response of the target is not valid HTTP/1.1' },
  timeout: { status: 504, reason: 'upstream_timeout', detail: 'the target did not begin its response within 100 seconds' },
}

const upstream = (name: string, rejected: readonly Upstream[], passed: string): Check<ObservedRequest> => ({
  name,
  reject: (observed) =>
    observed.upstream !== 'unknown' && rejected.includes(observed.upstream) ? UPSTREAM_REJECTIONS[observed.upstream] : undefined,
  passed: () => passed,
})

/** Checks of a request, in this order; the first rejection is the response (docs/edge.md, "Decisions about requests"). */
export const REQUEST_CHECKS: readonly Check<ObservedRequest>[] = [
  { name: 'parse', reject: ({ malformed }) => malformed, passed: () => 'the request is valid HTTP' },
  {
    name: 'server_name',
    reject: ({ scheme, serverName, host }) => (scheme === 'https' && serverName !== host ? MISDIRECTED : undefined),
    passed: ({ scheme }) => (scheme === 'https' ? 'the TLS handshake named the same host' : 'plain HTTP has no TLS handshake'),
  },
  {
    name: 'acme_challenge',
    reject: ({ challengeKnown }) => (challengeKnown ? CHALLENGE : undefined),
    passed: () => 'the path is not an ACME challenge for a certificate of this installation',
  },
  { name: 'known_host', reject: ({ tunnel }) => (tunnel ? undefined : UNKNOWN_HOST), passed: () => 'a tunnel has this hostname' },
  {
    name: 'ingress',
    reject: ({ tunnel, sourceIp }) => (tunnel?.ingress.allows(sourceIp) === false ? IP_DENIED : undefined),
    passed: ({ tunnel }) =>
      tunnel?.config.ingressIPWhitelist.length === 0
        ? 'ingressIPWhitelist is empty: all addresses are allowed'
        : 'the address is in ingressIPWhitelist',
  },
  {
    name: 'https_only',
    reject: ({ tunnel, scheme }) => (scheme === 'http' && tunnel?.config.httpsOnly ? HTTPS_ONLY : undefined),
    passed: ({ scheme }) => (scheme === 'https' ? 'the request came over HTTPS' : 'httpsOnly is not set'),
  },
  {
    name: 'cors_preflight',
    reject: ({ tunnel, method }) => (method === 'OPTIONS' && tunnel?.config.allowCorsPreflight ? PREFLIGHT : undefined),
    passed: ({ method }) => (method === 'OPTIONS' ? 'allowCorsPreflight is not set' : 'the method is not OPTIONS'),
  },
  {
    name: 'limits',
    reject: ({ overload }) => (overload === 'none' ? undefined : overload === 'tunnel' ? TUNNEL_BUSY : EDGE_BUSY),
    passed: () => 'no limit is reached',
  },
  upstream('session', ['offline'], 'a client is connected, or the edge waits for one'),
  upstream('channel', ['refused'], 'the edge asks the client to connect to its target'),
  upstream('answer', ['reset', 'lost', 'invalid'], 'the edge sends the request to the target'),
  upstream('in_time', ['timeout'], 'the target has 100 seconds to begin its response'),
]

/** Checks that a request in progress must still pass when the settings of its tunnel change: the tunnel exists and allows this visitor. */
export const ACCESS_CHECKS: readonly Check<ObservedRequest>[] = REQUEST_CHECKS.filter(({ name }) =>
  ['known_host', 'ingress', 'https_only'].includes(name),
)

/** Observed state of an SSH login: all input of the decisions about it. */
export interface ObservedLogin {
  /** Tunnel that the user name names. */
  readonly tunnel: { readonly config: TunnelConfig; readonly sshSources: AddressList } | undefined
  readonly sourceIp: string
  readonly authMethod: 'key' | 'token'
  /** Number of live passwords. */
  readonly livePasswords: number
  /** Number of sessions of the tunnel. */
  readonly sessions: number
  /** Maximum number of sessions of the tunnel. */
  readonly maxSessions: number
}

const loginRejection = (reason: string, detail: string): Rejection<string> => ({ status: 0, reason, detail })
const NO_TUNNEL = loginRejection('unknown_host', 'no tunnel has this hostname')
const SOURCE_DENIED = loginRejection('ip_denied', 'the address is not in sshIPWhitelist')
const MODE_DENIED = loginRejection('auth_mode', 'authMode does not allow this credential')
const NO_KEY = loginRejection('no_credential', 'authorizedKeys is empty')
const NO_PASSWORD = loginRejection('no_credential', 'the tunnel has no valid temporary password')
const TOO_MANY = loginRejection('too_many_sessions', 'the tunnel has the maximum number of sessions')

/** Checks of a login, in this order, before the credential itself is verified (docs/edge.md, "Decisions about logins"). */
export const LOGIN_CHECKS: readonly Check<ObservedLogin, string>[] = [
  { name: 'known_host', reject: ({ tunnel }) => (tunnel ? undefined : NO_TUNNEL), passed: () => 'a tunnel has this hostname' },
  {
    name: 'ssh_source',
    reject: ({ tunnel, sourceIp }) => (tunnel?.sshSources.allows(sourceIp) === false ? SOURCE_DENIED : undefined),
    passed: ({ tunnel }) =>
      tunnel?.config.sshIPWhitelist.length === 0
        ? 'sshIPWhitelist is empty: all addresses are allowed'
        : 'the address is in sshIPWhitelist',
  },
  {
    name: 'auth_mode',
    reject: ({ tunnel, authMethod }) =>
      tunnel && ![authMethod, 'both'].includes(tunnel.config.authMode) ? MODE_DENIED : undefined,
    passed: ({ tunnel }) => `authMode is ${tunnel?.config.authMode ?? 'not known'}`,
  },
  {
    name: 'credential',
    reject: ({ tunnel, authMethod, livePasswords }) => {
      if (authMethod === 'token') return livePasswords === 0 ? NO_PASSWORD : undefined
      return tunnel?.config.authorizedKeys.length === 0 ? NO_KEY : undefined
    },
    passed: ({ authMethod }) =>
      authMethod === 'key' ? 'the login needs a key of authorizedKeys' : 'the login needs a temporary password',
  },
  {
    name: 'sessions',
    reject: ({ sessions, maxSessions }) => (sessions >= maxSessions ? TOO_MANY : undefined),
    passed: ({ sessions, maxSessions }) => `${sessions} of ${maxSessions} sessions are in use`,
  },
]

/** Returns the first rejection of a list of checks, or undefined when all pass. */
export function firstRejection<Observed, Reason extends string>(
  checks: readonly Check<Observed, Reason>[],
  observed: Observed,
): Rejection<Reason> | undefined {
  for (const check of checks) {
    const rejection = check.reject(observed)
    if (rejection) return rejection
  }
  return undefined
}

/** Result of one check in an explanation (docs/api.md, "Explain"). */
export interface Step {
  readonly check: string
  readonly verdict: 'pass' | 'stop'
  readonly detail: string
}

export interface Explanation {
  /** Checks up to the first rejection. */
  readonly steps: readonly Step[]
  /** Decision. Both null: the backend answers, or the credential of the login is verified next. A rejected login has a null status. */
  readonly answer: { readonly status: number | null; readonly reason: string | null }
}

/** Runs a list of checks and returns the detail of each. */
export function explain<Observed>(checks: readonly Check<Observed, string>[], observed: Observed): Explanation {
  const steps: Step[] = []
  for (const check of checks) {
    const rejection = check.reject(observed)
    steps.push({ check: check.name, verdict: rejection ? 'stop' : 'pass', detail: rejection?.detail ?? check.passed(observed) })
    if (rejection)
      return { steps, answer: { status: rejection.status === 0 ? null : rejection.status, reason: rejection.reason } }
  }
  return { steps, answer: { status: null, reason: null } }
}
