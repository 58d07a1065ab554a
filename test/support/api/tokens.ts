import { importJWK, type JWTPayload, SignJWT } from 'jose'
import type { Installation } from '../deployment/installation.ts'

/** What a good token says beside who issued it. */
export interface Holder {
  readonly subject: string
  /** As `acme/prod`. */
  readonly namespace?: string | undefined
  readonly role?: string | undefined
  readonly groups?: readonly string[] | undefined
  readonly ttlSeconds?: number | undefined
}

/** Tokens of the installation's own issuer. */
export interface Tokens {
  /** One that is good for an hour unless said otherwise. */
  mint(holder: Holder): Promise<string>
  /** One that says exactly this: for what must be refused although it is signed well. */
  sign(claims: JWTPayload): Promise<string>
  /** The claims of a good token, to change. */
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
