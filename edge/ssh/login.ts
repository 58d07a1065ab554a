import { createHash, timingSafeEqual } from 'node:crypto'
import { livePasswords } from '../../shared/live-passwords.ts'
import { firstRejection, LOGIN_CHECKS } from '../../shared/tunnel-decisions.ts'
import type { PasswordRoutes, Route, RoutedPassword, Routes } from '../route.ts'
import type { Login } from '../session.ts'
import { fingerprintOf, parsePublicKeyLine, type PublicKey } from './public-key.ts'

/**
 * Why a login was refused: a reason of {@link LOGIN_CHECKS}, or `key`, `password`, `expired`, `rate`. Only the journal of its tunnel
 * says so; `unknown_host` has none.
 */
export type Refusal = string

/** Why a session may not go on. */
export type Revocation = 'tunnel_deleted' | 'ip_denied' | 'auth_mode' | 'key_removed' | 'password_revoked' | 'password_expired'

export interface AcceptedLogin {
  readonly route: Route
  readonly login: Login
  /** The one to be proven, of a login by key. */
  readonly key?: PublicKey
}

export interface DeniedLogin {
  /** Whose journal it is for. */
  readonly route: Route | undefined
  readonly refusal: Refusal
  readonly fingerprint?: string
  readonly passwordId?: string
}

export type LoginDecision = AcceptedLogin | DeniedLogin

/** What every temporary password begins with. */
const PASSWORD_PREFIX = 'mt_'

interface Attempt {
  readonly source: string
  readonly authMethod: Login['authMethod']
  /** Of a password that the tunnel does not have; else one is live at least, or was. */
  readonly livePasswords?: number | undefined
  readonly sessions?: number
  readonly maxSessions?: number
}

/** What stands against a login before its key or password is looked at, or (with `sessions`) after that. */
export function refusalOf(
  route: Route | undefined,
  { source, authMethod, livePasswords: live = 1, sessions = 0, maxSessions = 1 }: Attempt,
): Refusal | undefined {
  const observed = { tunnel: route, sourceIp: source, authMethod, livePasswords: live, sessions, maxSessions }
  return firstRejection(LOGIN_CHECKS, observed)?.reason
}

/** Keys of a config, by their base64 as SSH transmits them: parsed once a change of the tunnel. */
const keysOf = new WeakMap<Route, ReadonlyMap<string, PublicKey>>()

function authorizedKeys(route: Route): ReadonlyMap<string, PublicKey> {
  const known = keysOf.get(route)
  if (known) return known
  const keys = route.config.authorizedKeys.map(parsePublicKeyLine).filter((key) => key !== undefined)
  const map = new Map(keys.map((key) => [key.blob.toString('base64'), key]))
  keysOf.set(route, map)
  return map
}

/** Whether a key would do; that the client has it is another question. */
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
  /** Milliseconds since the epoch. */
  readonly now: number
}

/**
 * The user names the tunnel; where it names none, the password does (surface, "SSH"). Never another one than the user says: its client would
 * serve what somebody else has put the same hash beside. A wrong password is told to the journal of the user's tunnel.
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

/** One of several alike that is live, if any is. */
function passwordIn(route: Route, sha256: Buffer, now: number): RoutedPassword | undefined {
  const alike = route.passwords.filter((candidate) => timingSafeEqual(Buffer.from(candidate.sha256, 'hex'), sha256))
  return alike.find((candidate) => refusalOfPassword(route, candidate, now) === undefined) ?? alike[0]
}

/** Why a password of a tunnel is not accepted now. One beyond the tenth is as good as none. */
function refusalOfPassword(route: Route, password: RoutedPassword, now: number): 'expired' | 'password' | undefined {
  if (endOf(password) <= now) return 'expired'
  return livePasswords(route.passwords, endOf, now).includes(password) ? undefined : 'password'
}

const endOf = ({ expiresAt }: RoutedPassword): number => expiresAt

/** Whether a session that was let in once would be let in no more. */
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
