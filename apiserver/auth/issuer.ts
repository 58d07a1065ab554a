import { calculateJwkThumbprint, importJWK, type JSONWebKeySet, type JWK, SignJWT } from 'jose'
import { z } from 'zod'
import type { Role } from '../../crds/names.ts'
import { AUDIENCE, NAMESPACE_CLAIM, type PLATFORM_ADMIN, ROLE_CLAIM } from './jwt.ts'

const ALGORITHM = 'EdDSA'

/** What a token says. `namespace` is the home, as `acme/prod`; a role in it needs it. */
export interface TokenClaims {
  readonly subject: string
  readonly namespace?: string | undefined
  readonly role?: Role | typeof PLATFORM_ADMIN | undefined
  readonly groups?: readonly string[] | undefined
  readonly ttlSeconds: number
}

/** OpenID Connect Discovery 1.0, section 3, as far as a verifier of tokens needs it. */
export interface Discovery {
  readonly issuer: string
  readonly jwks_uri: string
  readonly id_token_signing_alg_values_supported: readonly string[]
  readonly response_types_supported: readonly string[]
  readonly subject_types_supported: readonly string[]
}

/** The issuer that comes with Mooring. */
export interface TokenIssuer {
  /** The claim `iss`. */
  readonly issuer: string
  /** A signed JWT for the audience `mooring`. */
  sign(claims: TokenClaims): Promise<string>
  /** The public key alone. */
  readonly jwks: JSONWebKeySet
  readonly discovery: Discovery
}

/** What an issuer signs with, and the name it signs under. A secret. */
export interface IssuerKey {
  /** The claim `iss`. It stays for good: tokens outlive a restart under another address. */
  readonly issuer: string
  /** Private Ed25519 key. */
  readonly privateKey: JWK
}

/** The stored form of an {@link IssuerKey}. */
export const IssuerKeyFile = z.object({
  issuer: z.url(),
  privateKey: z.looseObject({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string(), d: z.string() }),
})

export async function createIssuer({ privateKey, issuer }: IssuerKey): Promise<TokenIssuer> {
  const key = await importJWK(privateKey, ALGORITHM)
  const { kty, crv, x } = privateKey
  const kid = privateKey.kid ?? (await calculateJwkThumbprint(privateKey))
  const publicKey = { kty, crv, x, kid, alg: ALGORITHM, use: 'sig' } as JWK

  async function sign({ subject, namespace, role, groups, ttlSeconds }: TokenClaims): Promise<string> {
    const issuedAt = Math.floor(Date.now() / 1e3)
    return new SignJWT({ [NAMESPACE_CLAIM]: namespace, [ROLE_CLAIM]: role, groups: groups && [...groups] })
      .setProtectedHeader({ alg: ALGORITHM, kid, typ: 'JWT' })
      .setIssuer(issuer)
      .setAudience(AUDIENCE)
      .setSubject(subject)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + ttlSeconds)
      .sign(key)
  }

  return {
    issuer,
    sign,
    jwks: { keys: [publicKey] },
    discovery: discoveryOf(issuer),
  }
}

/** What Mooring's own issuer of that name publishes about itself. */
export function discoveryOf(issuer: string): Discovery {
  return {
    issuer,
    jwks_uri: `${issuer.replace(/\/$/, '')}/.well-known/jwks.json`,
    id_token_signing_alg_values_supported: [ALGORITHM],
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
  }
}
