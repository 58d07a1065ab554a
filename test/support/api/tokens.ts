import { importJWK, type JWTPayload, SignJWT } from 'jose'
import type { Installation } from '../deployment/installation.ts'

/** Claims of a valid token besides its issuer. */
export interface Holder {
  readonly subject: string
  /** Namespace as `acme/prod`. */
  readonly namespace?: string | undefined
  readonly role?: string | undefined
  readonly groups?: readonly string[] | undefined
  readonly ttlSeconds?: number | undefined
}

/** Signer of tokens with the key of the installation's own issuer. */
export interface Tokens {
  /** Signs a valid token, by default for one hour. */
  mint(holder: Holder): Promise<string>
  /** Signs a token with exactly these claims, for tests of rejected claims with a valid signature. */
  sign(claims: JWTPayload): Promise<string>
  /** Returns the claims of a valid token, for a test to change. */
  claims(holder: Holder): JWTPayload
}

export function createTokens({ issuer: { issuer, privateKey } }: Pick<Installation, 'issuer'>): Tokens {
  function claims({ subject, namespace, role, groups, ttlSeconds = 3_600 }: Holder): JWTPayload {
    const now = Math.floor(Date.now() / 1e3)
    const about = { mooring_namespace: namespace, mooring_role: role, groups }
    return { ...about, iss: issuer, aud: 'mooring', sub: subject, iat: now, exp: now + ttlSeconds }
  }

  async function sign(payload: JWTPayload): Promise<string> {
    const header = { alg: 'EdDSA', typ: 'JWT', ...(privateKey.kid !== undefined && { kid: privateKey.kid }) }
    return new SignJWT(payload).setProtectedHeader(header).sign(await importJWK(privateKey, 'EdDSA'))
  }

  return { claims, sign, mint: (holder) => sign(claims(holder)) }
}
