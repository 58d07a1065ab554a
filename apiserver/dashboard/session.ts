import { hkdfSync, randomBytes } from 'node:crypto'
import { decodeJwt, EncryptJWT, errors, jwtDecrypt } from 'jose'
import { z } from 'zod'
import { API_TOKEN_PREFIX } from '../auth/authenticate.ts'
import { wrongField } from '../http/errors.ts'
import type { SignedOut } from './signed-out.ts'

/**
 * Name of the session cookie. Browsers accept the prefix only with `Secure`, `Path=/` and no `Domain` (RFC 6265bis, section 4.1.3.2), so that no other
 * host of the domain can set a cookie of this name.
 */
export const SESSION_COOKIE = '__Host-mooring-session'
/** Maximum duration of a session in seconds. */
const LONGEST_S = 12 * 3_600
/** Maximum length of a token in characters: browsers drop cookies above 4,096 bytes, and the encryption adds a third. */
const TOKEN_MAX = 2_800
const ATTRIBUTES = 'Path=/; HttpOnly; Secure; SameSite=Strict'

const Claims = z.object({ token: z.string(), jti: z.string(), exp: z.number() })

/** Sessions of the dashboard. The server stores no session: the cookie contains the caller's token, encrypted. It stores those that signed out. */
export interface Sessions {
  /**
   * Returns the value of `Set-Cookie` that begins a session. The caller has verified `token`.
   * @throws ApiError `invalid_request` for a token that is too long
   */
  begin(token: string): Promise<string>
  /** Returns the token of the session in a `Cookie` header; undefined without a session, with one that has expired or signed out, or with several. */
  tokenOf(cookies: string | undefined): Promise<string | undefined>
  /** Ends the session in a `Cookie` header on all replicas. Without a session it does nothing. @throws StoreError */
  end(cookies: string | undefined): Promise<void>
}

export interface SessionsDeps {
  /** Secret of the installation, from which the key derives. */
  readonly secret: Uint8Array
  readonly signedOut: SignedOut
  readonly now: () => Date
}

/** Value of `Set-Cookie` that removes the session from the browser. */
export const END_OF_SESSION = `${SESSION_COOKIE}=; ${ATTRIBUTES}; Max-Age=0`

/**
 * Creates the sessions of an installation. The key derives from the installation's secret, so that each replica of the API server accepts the
 * cookies of the others, before and after a restart (docs/decisions/2026-11-24-sessions-of-the-dashboard.md).
 */
export function createDashboardSessions({ secret, signedOut, now }: SessionsDeps): Sessions {
  const key = new Uint8Array(hkdfSync('sha256', secret, '', 'mooring dashboard session', 32))

  /** Returns the claims of an open session. */
  async function claimsOf(cookies: string | undefined): Promise<z.output<typeof Claims> | undefined> {
    const values = valuesOf(cookies)
    const [sealed] = values
    if (sealed === undefined || values.length > 1) return undefined
    try {
      const { payload } = await jwtDecrypt(sealed, key, {
        currentDate: now(),
        requiredClaims: ['exp', 'jti'],
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: ['A256GCM'],
      })
      const claims = Claims.parse(payload)
      return (await signedOut.has(claims.jti)) ? undefined : claims
    } catch (error) {
      if (error instanceof errors.JOSEError || error instanceof z.ZodError) return undefined
      throw error
    }
  }

  return {
    async begin(token) {
      if (token.length > TOKEN_MAX) {
        throw wrongField('token', `is longer than ${TOKEN_MAX} characters, which fit into no cookie; use an API token`)
      }
      const begun = Math.floor(now().getTime() / 1e3)
      const until = Math.min(begun + LONGEST_S, expiryOf(token) ?? Infinity)
      const sealed = await new EncryptJWT({ token })
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
        .setJti(randomBytes(16).toString('base64url'))
        .setExpirationTime(until)
        .encrypt(key)
      return `${SESSION_COOKIE}=${sealed}; ${ATTRIBUTES}; Max-Age=${Math.max(0, until - begun)}`
    },
    tokenOf: async (cookies) => (await claimsOf(cookies))?.token,
    async end(cookies) {
      const claims = await claimsOf(cookies)
      if (claims) await signedOut.add(claims.jti, claims.exp)
    },
  }
}

/** Returns the expiry of a verified JWT in seconds since the epoch; undefined for an API token, whose resource has the expiry. */
function expiryOf(token: string): number | undefined {
  return token.startsWith(API_TOKEN_PREFIX) ? undefined : decodeJwt(token).exp
}

/** Returns the values of all session cookies in a `Cookie` header. */
function valuesOf(cookies = ''): readonly string[] {
  return cookies
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${SESSION_COOKIE}=`))
    .map((pair) => pair.slice(SESSION_COOKIE.length + 1))
}
