import { calculateJwkThumbprint, importJWK, type JSONWebKeySet, type JWK, SignJWT } from 'jose'
import { z } from 'zod'
import type { Role } from '../../crds/names.ts'
import { AUDIENCE, NAMESPACE_CLAIM, type PLATFORM_ADMIN, ROLE_CLAIM } from './jwt.ts'

const ALGORITHM = 'EdDSA'

/** Claims of a token. `namespace` is the home namespace, such as `acme/prod`; a role other than platform-admin needs it. */
export interface TokenClaims {
  readonly subject: string
  readonly namespace?: string | undefined
  readonly role?: Role | typeof PLATFORM_ADMIN | undefined
  readonly groups?: readonly string[] | undefined
  readonly ttlSeconds: number
}

/** Discovery document with the fields that a verifier of tokens needs (OpenID Connect Discovery 1.0, section 3). */
export interface Discovery {
  readonly issuer: string
  readonly jwks_uri: string
  readonly id_token_signing_alg_values_supported: readonly string[]
  readonly response_types_supported: readonly string[]
  readonly subject_types_supported: readonly string[]
}

/** Mooring's own issuer of tokens. */
export interface TokenIssuer {
  /** Value of the claim `iss`. */
  readonly issuer: string
  /** Returns a signed JWT for the audience `mooring`. */
  sign(claims: TokenClaims): Promise<string>
  /** Key set with the public key only. */
  readonly jwks: JSONWebKeySet
  readonly discovery: Discovery
}

/** Private key and name of an issuer. A secret. */
export interface IssuerKey {
  /** Value of the claim `iss`. It never changes: tokens stay valid after a restart at another address. */
  readonly issuer: string
  /** Private Ed25519 key. */
  readonly privateKey: JWK
}

/** Stored form of an {@link IssuerKey}. */
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

/** Returns the discovery document of Mooring's own issuer with this name. */
export function discoveryOf(issuer: string): Discovery {
  return {
    issuer,
    jwks_uri: `${issuer.replace(/\/$/, '')}/.well-known/jwks.json`,
    id_token_signing_alg_values_supported: [ALGORITHM],
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
  }
}
