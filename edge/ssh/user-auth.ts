import type { EdgeClock } from '../clock.ts'
import type { LoginRoutes, Route } from '../route.ts'
import type { Login } from '../sessions.ts'
import { ISSUED_PASSWORD } from '../../crds/tunnel-password.ts'
import { type DeniedLogin, checkKey, checkPassword, type Refusal, refusalOf, type LoginDecision } from './login.ts'
import type { MinuteCounter } from '../counters.ts'
import { fingerprintOf, parsePublicKey, type PublicKey } from './public-key.ts'
import { sentences } from './sentences.ts'
import { type AuthRequest, Reason } from './wire/messages.ts'
import type { Wire } from './wire/wire.ts'

type PasswordRequest = Extract<AuthRequest, { readonly method: 'password' }>
type KeyRequest = Extract<AuthRequest, { readonly method: 'publickey' }>

/** Refused login, for the journal of its tunnel. */
export interface RefusedLogin {
  readonly route: Route
  readonly refusal: Refusal
  readonly authMethod: Login['authMethod']
  readonly fingerprint: string | undefined
  readonly passwordId: string | undefined
}

interface Deps {
  readonly wire: Wire
  readonly routes: LoginRoutes
  readonly source: string
  /** Key of the source under which failures are counted. */
  readonly sourceKey: string
  readonly failures: { readonly bySource: MinuteCounter; readonly bySourceAndTunnel: MinuteCounter }
  readonly limits: { readonly tries: number; readonly sessions: number }
  readonly date: EdgeClock['date']
  sessionsOf(hostname: string): number
  /** The login is valid; the client has not got the reply yet. */
  accepted(route: Route, login: Login): void
  disconnect(reason: Reason, sentence: string): void
}

/** Login of one connection (RFC 4252). Every refusal looks the same to the client, and reveals nothing about the tunnel. */
export interface UserAuth {
  handle(request: AuthRequest): void
  /** Handles the end of a connection without a login: counts a failure, and returns its last refusal. */
  abandoned(): RefusedLogin | undefined
}

/**
 * Maximum signatures that one connection may have verified: each costs up to milliseconds, and the owner of a key sends a valid one at
 * once.
 */
const MAX_SIGNATURES = 3
/** User name with the form of a tunnel, existing or not: `{hostname}`, `{hostname}.{domain}`. */
const NAMES_A_TUNNEL = /^[0-9a-f]{16}(\.|$)/
/** Maximum hostnames in a sentence. */
const MAX_LISTED = 10

const proven = (login: Login): Pick<RefusedLogin, 'authMethod' | 'fingerprint' | 'passwordId'> =>
  login.authMethod === 'key'
    ? { authMethod: 'key', fingerprint: login.keyFingerprint, passwordId: undefined }
    : { authMethod: 'token', fingerprint: undefined, passwordId: login.passwordId }

export function createUserAuth(deps: Deps): UserAuth {
  const { wire, routes, source, sourceKey, failures, limits } = deps
  let tries = 0
  let signatures = 0
  let methodsSent = false
  let keyFailed = false
  let explained = false
  let last: RefusedLogin | undefined

  function handle(request: AuthRequest): void {
    if (request.method === 'none' && !methodsSent) {
      // Clients begin with `none` to learn the methods (RFC 4252, section 5.2).
      methodsSent = true
      wire.refuse()
    } else if (request.method === 'none' || request.method === 'other') refuseAgain()
    else authenticate(request)
  }

  /**
   * Checks a login. Failures limit guessing; a key cannot be guessed, so it is checked whatever its source has done
   * (docs/ssh-logins.md).
   */
  function authenticate(request: PasswordRequest | KeyRequest): void {
    const route = routes.get(request.user)
    if (request.method === 'publickey') publicKeyOf(route, request)
    else if (!isLimited(route)) password(request)
    else if (ISSUED_PASSWORD.test(request.password)) lastPassword(request)
    else tooMany(route, request)
  }

  function isLimited(route: Route | undefined): boolean {
    if (failures.bySource.reached(sourceKey)) return true
    return route !== undefined && failures.bySourceAndTunnel.reached(`${sourceKey} ${route.hostname}`)
  }

  const decide = (request: PasswordRequest): LoginDecision => checkPassword(routes, { ...request, source, now: deps.date() })

  function password(request: PasswordRequest): void {
    const decision = decide(request)
    if ('login' in decision) accept(decision.route, decision.login)
    else {
      countFailure(decision.route)
      refuse(decision, request)
    }
  }

  /** Checks a password of a source with too many failures: a valid one is accepted, a wrong one ends the connection. */
  function lastPassword(request: PasswordRequest): void {
    const decision = decide(request)
    if ('login' in decision) accept(decision.route, decision.login)
    else tooMany(decision.route, request)
  }

  function tooMany(route: Route | undefined, request: PasswordRequest): void {
    refused({ route, refusal: 'rate' }, request)
    deps.disconnect(Reason.noMoreAuthMethods, sentences.refused('rate'))
  }

  /**
   * Selects the tunnel by the user name. A user name without the form of a hostname selects none: then the key does, if exactly one
   * tunnel lists it.
   */
  function publicKeyOf(named: Route | undefined, request: KeyRequest): void {
    const key = named || NAMES_A_TUNNEL.test(request.user) ? undefined : parsePublicKey(request.blob)
    const listing = key ? routes.ofKey(key, MAX_LISTED + 1) : []
    if (key && listing.length > 1) keyOfSeveral(key, listing, request)
    else publicKey(named ?? listing[0], request)
  }

  /**
   * Handles a key that several tunnels list. Only a client that has proven the key learns their hostnames, and only of tunnels that it
   * may log in to.
   */
  function keyOfSeveral(key: PublicKey, listing: readonly Route[], request: KeyRequest): void {
    const open = listing.filter((route) => refusalOf(route, { source, authMethod: 'key' }) === undefined)
    if (open.length === 0) refuseKey({ route: undefined, refusal: 'unknown_host' }, request)
    else if (!request.signature) askForSignature(undefined, request)
    else if (!mayVerify()) return
    else if (!key.verify(request.signature.of, request.signature.bytes, request.hash))
      refuseKey({ route: undefined, refusal: 'key' }, request)
    else
      deps.disconnect(Reason.noMoreAuthMethods, sentences.severalTunnels(open.map(({ hostname }) => hostname).sort(), MAX_LISTED))
  }

  function mayVerify(): boolean {
    signatures += 1
    if (signatures > MAX_SIGNATURES) deps.disconnect(Reason.noMoreAuthMethods, sentences.tries)
    return signatures <= MAX_SIGNATURES
  }

  function publicKey(route: Route | undefined, request: KeyRequest): void {
    const decision = checkKey(route, source, request.blob)
    if (!('login' in decision)) refuseKey(decision, request)
    else if (!request.signature) askForSignature(decision.route, request)
    else if (!mayVerify()) return
    else if (decision.key?.verify(request.signature.of, request.signature.bytes, request.hash))
      accept(decision.route, decision.login)
    else refuseKey({ route, refusal: 'key', fingerprint: fingerprintOf(request.blob) }, request)
  }

  function askForSignature(route: Route | undefined, request: KeyRequest): void {
    const type = parsePublicKey(request.blob)?.type ?? ''
    if (type === 'ssh-rsa' && request.hash === undefined) refuseKey({ route, refusal: 'key' }, request)
    else wire.wouldDo(request.hash === undefined ? type : `rsa-sha2-${request.hash.slice('sha'.length)}`, request.blob)
  }

  function refuseKey(decision: DeniedLogin, request: AuthRequest): void {
    keyFailed = true
    refuse(decision, request)
  }

  function accept(route: Route, login: Login): void {
    const sessions = deps.sessionsOf(route.hostname)
    const refusal = refusalOf(route, { source, authMethod: login.authMethod, sessions, maxSessions: limits.sessions })
    if (refusal) {
      last = { route, refusal, ...proven(login) }
      deps.disconnect(Reason.tooManyConnections, sentences.refused(refusal))
      return
    }
    keyFailed = false
    last = undefined
    deps.accepted(route, login)
  }

  function refused({ route, refusal, ...rest }: DeniedLogin, { method }: AuthRequest): void {
    const authMethod = method === 'password' ? 'token' : 'key'
    if (route) last = { route, refusal, authMethod, fingerprint: rest.fingerprint, passwordId: rest.passwordId }
    // The first tunnel did not refuse a client that continues with another user name.
    else last = undefined
  }

  function refuse(decision: DeniedLogin, request: AuthRequest): void {
    refused(decision, request)
    // Stock ssh shows only "Permission denied". The sentence is sent once, because a client with many keys would show it for each.
    const explain = !explained || decision.refusal === 'expired'
    explained = true
    refuseAgain(explain ? sentences.refused(decision.refusal) : undefined)
  }

  /** Counts an attempt (RFC 4252, section 4), and ends the connection after the last one. */
  function refuseAgain(explanation?: string): void {
    tries += 1
    if (tries >= limits.tries) deps.disconnect(Reason.noMoreAuthMethods, sentences.tries)
    else {
      if (explanation !== undefined) wire.banner(`${explanation}\r\n`)
      wire.refuse()
    }
  }

  function countFailure(route: Route | undefined): void {
    failures.bySource.add(sourceKey)
    if (route) failures.bySourceAndTunnel.add(`${sourceKey} ${route.hostname}`)
  }

  return {
    handle,
    abandoned() {
      // Clients offer each of their keys: a connection counts as one failure, whatever the number of keys.
      if (keyFailed) countFailure(last?.route)
      return last
    },
  }
}
