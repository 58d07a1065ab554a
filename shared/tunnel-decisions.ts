import type { AddressList } from '../crds/formats/address-list.ts'
import type { TunnelConfig } from '../crds/tunnel-config.ts'

/** Values of `Mooring-Error`, and of `reason` in the request log: why the edge answered a request itself, or how one ended early. */
export const REQUEST_REASONS = [
  ...(['bad_request', 'head_too_large', 'unknown_transfer_coding', 'bad_expectation', 'too_slow', 'misdirected'] as const),
  ...(['acme_challenge', 'unknown_challenge', 'unknown_host', 'ip_denied', 'https_only', 'cors_preflight'] as const),
  ...(['overloaded', 'edge_stopping', 'tunnel_offline'] as const),
  ...(['upstream_refused', 'upstream_reset', 'upstream_invalid', 'upstream_timeout', 'visitor_gone'] as const),
] as const
export type RequestReason = (typeof REQUEST_REASONS)[number]

/** A request that is answered by the edge itself, or an SSH login that is refused. */
export interface Rejection<Reason extends string = RequestReason> {
  /** HTTP status. Of an SSH login: 0. */
  readonly status: number
  /** A word: the value of `Mooring-Error`, and of the journal's `reason`. */
  readonly reason: Reason
  /** A sentence for whoever asks why. */
  readonly detail: string
}

/** How far the way to the backend is known to lead. `unknown`: nobody has tried yet. */
export type Upstream = 'unknown' | 'offline' | 'refused' | 'reset' | 'lost' | 'invalid' | 'timeout'

/** What is known of a request; all that a decision about it may depend on. */
export interface ObservedRequest {
  /** Why it cannot be understood. */
  readonly malformed: Rejection | undefined
  readonly scheme: 'http' | 'https'
  /** Name asked for in the TLS handshake (RFC 6066, section 3), in lower case. */
  readonly serverName: string | undefined
  /** Of its Host field: in lower case, without the port. */
  readonly host: string
  readonly method: string
  /** Without its query. */
  readonly path: string
  readonly sourceIp: string
  /** Whether the edge can answer the ACME challenge that it asks for. */
  readonly challengeKnown: boolean
  /** The tunnel whose host it names. */
  readonly tunnel: { readonly config: TunnelConfig; readonly ingress: AddressList } | undefined
  /** Whose limit of concurrent work is reached. */
  readonly overload: 'none' | 'tunnel' | 'edge'
  readonly upstream: Upstream
}

/** One question of an ordered list. */
export interface Check<Observed, Reason extends string = RequestReason> {
  readonly name: string
  /** Undefined: the next check decides. */
  reject(observed: Observed): Rejection<Reason> | undefined
  /** What is said where it does not stop. */
  passed(observed: Observed): string
}

/** Path below which a certificate authority looks for its answer (RFC 8555, section 8.3). */
export const CHALLENGE_PATH = '/.well-known/acme-challenge/'

/** Characters of the longest method that is taken; the longest that is registered has 17 (IANA, HTTP Method Registry). */
export const METHOD_MAX = 32
const LONG_METHOD: Rejection = {
  status: 400,
  reason: 'bad_request',
  detail: `the method is longer than ${METHOD_MAX} characters`,
}
const BAD_TARGET: Rejection = { status: 400, reason: 'bad_request', detail: 'the request target is not valid' }

/** Why a request with this method, of a target in origin form, cannot be understood: CONNECT is for proxies that are asked to be one (RFC 9112, section 3.2.3). */
export function methodStop(method: string): Rejection | undefined {
  if (method.length > METHOD_MAX) return LONG_METHOD
  return method === 'CONNECT' ? BAD_TARGET : undefined
}

const MISDIRECTED: Rejection = {
  status: 421,
  reason: 'misdirected',
  detail: 'the TLS handshake named another host than the request',
}
const UNKNOWN_CHALLENGE: Rejection = {
  status: 404,
  reason: 'unknown_challenge',
  detail: 'no certificate is being ordered with this challenge',
}
const CHALLENGE: Rejection = { status: 200, reason: 'acme_challenge', detail: 'the edge answers the certificate authority' }
const UNKNOWN_HOST: Rejection = { status: 404, reason: 'unknown_host', detail: 'no tunnel has this hostname' }
const IP_DENIED: Rejection = { status: 403, reason: 'ip_denied', detail: 'the address is not in ingressIPWhitelist' }
const HTTPS_ONLY: Rejection = { status: 301, reason: 'https_only', detail: 'httpsOnly is set: the visitor is sent to HTTPS' }
const PREFLIGHT: Rejection = {
  status: 204,
  reason: 'cors_preflight',
  detail: 'allowCorsPreflight is set: the edge answers OPTIONS itself',
}
const TUNNEL_BUSY: Rejection = { status: 429, reason: 'overloaded', detail: 'too many requests of this tunnel are under way' }
const EDGE_BUSY: Rejection = { status: 503, reason: 'overloaded', detail: 'the edge has too many connections' }

/** What becomes of a request whose way to the backend ends early. */
export const UPSTREAM_REJECTIONS: Readonly<Record<Exclude<Upstream, 'unknown'>, Rejection>> = {
  offline: { status: 503, reason: 'tunnel_offline', detail: 'no client is connected to this tunnel' },
  refused: { status: 502, reason: 'upstream_refused', detail: 'the client could not reach its target' },
  reset: { status: 502, reason: 'upstream_reset', detail: 'the target closed the connection before it had answered' },
  lost: { status: 502, reason: 'upstream_reset', detail: 'the client was disconnected before its target had answered' },
  invalid: { status: 502, reason: 'upstream_invalid', detail: 'the answer of the target is not valid HTTP/1.1' },
  timeout: { status: 504, reason: 'upstream_timeout', detail: 'the target did not begin to answer in 100 seconds' },
}

const upstream = (name: string, stops: readonly Upstream[], passed: string): Check<ObservedRequest> => ({
  name,
  reject: (observed) =>
    observed.upstream !== 'unknown' && stops.includes(observed.upstream) ? UPSTREAM_REJECTIONS[observed.upstream] : undefined,
  passed: () => passed,
})

/** What the edge decides about a request, in this order (surface, section 5); the first that stops answers. */
export const REQUEST_CHECKS: readonly Check<ObservedRequest>[] = [
  { name: 'parse', reject: ({ malformed }) => malformed, passed: () => 'the request is valid HTTP' },
  {
    name: 'server_name',
    reject: ({ scheme, serverName, host }) => (scheme === 'https' && serverName !== host ? MISDIRECTED : undefined),
    passed: ({ scheme }) =>
      scheme === 'https' ? 'the TLS handshake named the same host' : 'plain HTTP names no host in a handshake',
  },
  {
    name: 'acme_challenge',
    reject: ({ path, challengeKnown }) =>
      path.startsWith(CHALLENGE_PATH) ? (challengeKnown ? CHALLENGE : UNKNOWN_CHALLENGE) : undefined,
    passed: () => 'the path is not that of a certificate authority’s challenge',
  },
  { name: 'known_host', reject: ({ tunnel }) => (tunnel ? undefined : UNKNOWN_HOST), passed: () => 'a tunnel has this hostname' },
  {
    name: 'ingress',
    reject: ({ tunnel, sourceIp }) => (tunnel?.ingress.allows(sourceIp) === false ? IP_DENIED : undefined),
    passed: ({ tunnel }) =>
      tunnel?.config.ingressIPWhitelist.length === 0
        ? 'ingressIPWhitelist is empty: everyone may'
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
  upstream('session', ['offline'], 'a client is connected, or is waited for'),
  upstream('channel', ['refused'], 'the client is asked to reach its target'),
  upstream('answer', ['reset', 'lost', 'invalid'], 'the target is sent the request'),
  upstream('in_time', ['timeout'], 'the target has 100 seconds to begin its answer'),
]

/** Checks that a request under way must still pass when the settings of its tunnel change: whether the tunnel is there and open to this visitor. */
export const ACCESS_CHECKS: readonly Check<ObservedRequest>[] = REQUEST_CHECKS.filter(({ name }) =>
  ['known_host', 'ingress', 'https_only'].includes(name),
)

/** What is known of an SSH login. */
export interface ObservedLogin {
  /** The tunnel of the user name. */
  readonly tunnel: { readonly config: TunnelConfig; readonly sshSources: AddressList } | undefined
  readonly sourceIp: string
  readonly authMethod: 'key' | 'token'
  /** Temporary passwords that have not expired. */
  readonly livePasswords: number
  /** Sessions of this tunnel, and how many it may have. */
  readonly sessions: number
  readonly maxSessions: number
}

const refusal = (reason: string, detail: string): Rejection<string> => ({ status: 0, reason, detail })
const NO_TUNNEL = refusal('unknown_host', 'no tunnel has this hostname')
const SOURCE_DENIED = refusal('ip_denied', 'the address is not in sshIPWhitelist')
const MODE_DENIED = refusal('auth_mode', 'authMode does not take this way to log in')
const NO_KEY = refusal('no_credential', 'authorizedKeys is empty')
const NO_PASSWORD = refusal('no_credential', 'the tunnel has no temporary password that is valid')
const TOO_MANY = refusal('too_many_sessions', 'the tunnel has as many sessions as it may')

/** What the edge decides about a login, in this order, before it looks at the credential itself. */
export const LOGIN_CHECKS: readonly Check<ObservedLogin, string>[] = [
  { name: 'known_host', reject: ({ tunnel }) => (tunnel ? undefined : NO_TUNNEL), passed: () => 'a tunnel has this hostname' },
  {
    name: 'ssh_source',
    reject: ({ tunnel, sourceIp }) => (tunnel?.sshSources.allows(sourceIp) === false ? SOURCE_DENIED : undefined),
    passed: ({ tunnel }) =>
      tunnel?.config.sshIPWhitelist.length === 0 ? 'sshIPWhitelist is empty: everyone may' : 'the address is in sshIPWhitelist',
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
      authMethod === 'key' ? 'a key of authorizedKeys is asked for' : 'a temporary password is asked for',
  },
  {
    name: 'sessions',
    reject: ({ sessions, maxSessions }) => (sessions >= maxSessions ? TOO_MANY : undefined),
    passed: ({ sessions, maxSessions }) => `${sessions} of ${maxSessions} sessions are taken`,
  },
]

/** The first stop of a list, if any. */
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

export interface Step {
  readonly check: string
  readonly verdict: 'pass' | 'stop'
  readonly detail: string
}

export interface Explanation {
  /** Up to the first that stops. */
  readonly steps: readonly Step[]
  /** Nulls: the backend answers, or the login goes on to its credential. A refused login has no status either. */
  readonly answer: { readonly status: number | null; readonly reason: string | null }
}

/** The same decisions, with what each said. */
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
