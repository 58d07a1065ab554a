import { createHash, timingSafeEqual } from 'node:crypto'
import { livePasswords } from '../../shared/live-passwords.ts'
import { firstRejection, LOGIN_CHECKS } from '../../shared/tunnel-decisions.ts'
import type { PasswordRoutes, Route, RoutedPassword, Routes } from '../route.ts'
import type { Login } from '../sessions.ts'
import { fingerprintOf, parsePublicKeyLine, type PublicKey } from './public-key.ts'

/**
 * Reason for a refused login: a reason of {@link LOGIN_CHECKS}, or `key`, `password`, `expired`, `rate`. It is visible only in the
 * journal of the tunnel; `unknown_host` has none.
 */
export type Refusal = string

/** Reason for ending a session that is not authorized any more. */
export type Revocation = 'tunnel_deleted' | 'ip_denied' | 'auth_mode' | 'key_removed' | 'password_revoked' | 'password_expired'

export interface AcceptedLogin {
  readonly route: Route
  readonly login: Login
  /** Key whose possession the client must prove, for a login by key. */
  readonly key?: PublicKey
}

export interface DeniedLogin {
  /** Tunnel whose journal records the refusal. */
  readonly route: Route | undefined
  readonly refusal: Refusal
  readonly fingerprint?: string
  readonly passwordId?: string
}

export type LoginDecision = AcceptedLogin | DeniedLogin

/** Prefix of every temporary password. */
const PASSWORD_PREFIX = 'mt_'

interface Attempt {
  readonly source: string
  readonly authMethod: Login['authMethod']
  /** Number of live passwords of the tunnel, for a password that it does not have; otherwise at least one is or was live. */
  readonly livePasswords?: number | undefined
  readonly sessions?: number
  readonly maxSessions?: number
}

/** Returns the reason against a login before its key or password is checked, or (with `sessions`) after that. */
export function refusalOf(
  route: Route | undefined,
  { source, authMethod, livePasswords: live = 1, sessions = 0, maxSessions = 1 }: Attempt,
): Refusal | undefined {
  const observed = { tunnel: route, sourceIp: source, authMethod, livePasswords: live, sessions, maxSessions }
  return firstRejection(LOGIN_CHECKS, observed)?.reason
}

/** Keys of a config by their base64 text, parsed once per change of the tunnel. */
const keysOf = new WeakMap<Route, ReadonlyMap<string, PublicKey>>()

function authorizedKeys(route: Route): ReadonlyMap<string, PublicKey> {
  const known = keysOf.get(route)
  if (known) return known
  const keys = route.config.authorizedKeys.map(parsePublicKeyLine).filter((key) => key !== undefined)
  const map = new Map(keys.map((key) => [key.blob.toString('base64'), key]))
  keysOf.set(route, map)
  return map
}

/** Decides about a key, before the client has proven that it owns it. */
export function checkKey(route: Route | undefined, source: string, blob: Buffer): LoginDecision {
  const fingerprint = fingerprintOf(blob)
  const refusal = refusalOf(route, { source, authMethod: 'key' })
  if (route === undefined || refusal) return { route, refusal: refusal ?? 'unknown_host', fingerprint }
  const key = authorizedKeys(route).get(blob.toString('base64'))
  if (key === undefined) return { route, refusal: 'key', fingerprint }
  return { route, login: { authMethod: 'key', keyFingerprint: key.fingerprint }, key }
}

export interface PasswordLogin {
  readonly user: string
  readonly password: string
  readonly source: string
  /** Current time in milliseconds since the epoch. */
  readonly now: number
}

/**
 * Decides about a password. The user name selects the tunnel; a user name without a tunnel leaves that to the password
 * (docs/ssh-logins.md). The password never selects another tunnel than the user name does: the client would serve a tunnel to which
 * another tenant copied the hash. A wrong password is recorded in the journal of the user's tunnel.
 */
export function checkPassword(routes: Routes & PasswordRoutes, { user, password, source, now }: PasswordLogin): LoginDecision {
  const named = routes.get(user)
  const sha256 = createHash('sha256').update(password).digest()
  const isTemporary = password.startsWith(PASSWORD_PREFIX)
  const route = isTemporary ? (named ?? routes.ofPassword(sha256.toString('hex'))) : undefined
  const known = route && passwordIn(route, sha256, now)
  if (route === undefined || known === undefined) {
    const live = named && livePasswords(named.passwords, endOf, now).length
    return { route: named, refusal: refusalOf(named, { source, authMethod: 'token', livePasswords: live }) ?? 'password' }
  }
  const refusal = refusalOf(route, { source, authMethod: 'token' }) ?? refusalOfPassword(route, known, now)
  if (refusal) return { route, refusal, passwordId: known.id }
  return { route, login: { authMethod: 'token', passwordId: known.id } }
}

/** Returns the tunnel's password with this hash, a live one if there are several. */
function passwordIn(route: Route, sha256: Buffer, now: number): RoutedPassword | undefined {
  const alike = route.passwords.filter((candidate) => timingSafeEqual(Buffer.from(candidate.sha256, 'hex'), sha256))
  return alike.find((candidate) => refusalOfPassword(route, candidate, now) === undefined) ?? alike[0]
}

/** Reason why a password of a tunnel is not accepted now. Passwords beyond the tenth do not count. */
function refusalOfPassword(route: Route, password: RoutedPassword, now: number): 'expired' | 'password' | undefined {
  if (endOf(password) <= now) return 'expired'
  return livePasswords(route.passwords, endOf, now).includes(password) ? undefined : 'password'
}

const endOf = ({ expiresAt }: RoutedPassword): number => expiresAt

/** Returns the reason why a session is not authorized any more; undefined while it is. */
export function revocationOf(
  route: Route | undefined,
  { source, login, now }: { readonly source: string; readonly login: Login; readonly now: number },
): Revocation | undefined {
  if (route === undefined) return 'tunnel_deleted'
  const refusal = refusalOf(route, { source, authMethod: login.authMethod })
  if (refusal === 'ip_denied' || refusal === 'auth_mode') return refusal
  if (login.authMethod === 'key') {
    const keys = [...authorizedKeys(route).values()]
    return keys.some(({ fingerprint }) => fingerprint === login.keyFingerprint) ? undefined : 'key_removed'
  }
  const password = route.passwords.find(({ id }) => id === login.passwordId)
  const why = password ? refusalOfPassword(route, password, now) : 'password'
  if (why === 'expired') return 'password_expired'
  return why && 'password_revoked'
}
