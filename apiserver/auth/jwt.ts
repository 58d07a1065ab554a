import { createHash } from 'node:crypto'
import { decodeJwt, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { z } from 'zod'
import {
  ISSUER_NAME,
  KUBERNETES_PREFIX,
  namespaceName,
  parseNamespacePath,
  PLATFORM_ADMIN_GROUP,
  RESERVED_NAMES,
  roleGroup,
  ROLES,
} from '../../crds/names.ts'
import { hasControl } from '../http/request-parser.ts'
import type { Principal } from '../http/route.ts'
import { AuthenticationError } from './authenticate.ts'
import { createKeySet, type IssuerConfig } from './trusted-issuers.ts'

/** Accepted algorithms, all asymmetric: a public key must never serve as an HMAC secret (RFC 8725, section 3.1). */
const ALGORITHMS = ['EdDSA', 'ES256', 'RS256']
export const AUDIENCE = 'mooring'
const CLOCK_TOLERANCE_S = 5
const CACHE_MS = 60_000
const CACHE_SIZE = 1_000

/** Claim with the home namespace, such as `acme/prod`. */
export const NAMESPACE_CLAIM = 'mooring_namespace'
/** Claim with the role in the home namespace, or `platform-admin`; used only from Mooring's own issuer. */
export const ROLE_CLAIM = 'mooring_role'
export const PLATFORM_ADMIN = 'platform-admin'

export interface JwtDeps {
  readonly issuers: readonly IssuerConfig[]
  readonly now?: () => number
}

const Name = z
  .string()
  .min(1)
  .max(256)
  .refine((name) => !hasControl(name) && !name.startsWith(KUBERNETES_PREFIX))
const Home = z.string().refine((text) => parseNamespacePath(text) !== undefined)
const Claims = z.object({
  sub: Name,
  exp: z.number(),
  groups: z.array(Name).max(256).default([]),
  [NAMESPACE_CLAIM]: Home.optional(),
  [ROLE_CLAIM]: z.unknown().optional(),
})
const OwnRole = z.enum([...ROLES, PLATFORM_ADMIN]).optional()

/** Name of an issuer, the prefix of its users. Names reserved by Kubernetes or Mooring are invalid. */
const IssuerName = z
  .string()
  .regex(ISSUER_NAME, 'the name of an issuer must be lower-case letters, digits and hyphens')
  .refine((name) => RESERVED_NAMES.every((reserved) => reserved !== name), `the names ${RESERVED_NAMES.join(', ')} are reserved`)

/**
 * Creates the verifier of JWTs of the listed issuers: `iss`, `aud`, `exp` and `sub` are required, `nbf` is respected, the clock tolerance is 5 s.
 * Verifying a signature is slow, so a valid token is cached by its hash: for at most one minute, never past `exp`.
 * @throws ZodError for an invalid or reserved issuer name; (from the function) AuthenticationError, ApiError `unavailable`
 */
export function createJwtVerifier({ issuers, now = Date.now }: JwtDeps): (token: string) => Promise<Principal> {
  const keySets = new Map<string, { config: IssuerConfig; keyOf: JWTVerifyGetKey }>()
  for (const config of issuers) {
    IssuerName.parse(config.name)
    keySets.set(config.issuer, { config, keyOf: createKeySet(config.keys) })
  }
  const verified = new Map<string, { principal: Principal; until: number }>()

  async function verify(token: string): Promise<{ principal: Principal; until: number }> {
    const issuer = keySets.get(issuerOf(token))
    if (!issuer) throw new AuthenticationError('invalid')
    const { config, keyOf } = issuer
    const options = {
      issuer: config.issuer,
      audience: config.audience ?? AUDIENCE,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_S,
      requiredClaims: ['exp', 'sub'],
      currentDate: new Date(now()),
    }
    const { payload } = await jwtVerify(token, keyOf, options).catch((error: unknown) => {
      throw toAuthenticationError(error)
    })
    const claims = Claims.safeParse(payload)
    if (!claims.success) throw new AuthenticationError('invalid', { cause: claims.error })
    return { principal: principalOf(config, claims.data), until: Math.min(claims.data.exp * 1e3, now() + CACHE_MS) }
  }

  return async function verifyJwt(token) {
    const hash = createHash('sha256').update(token).digest('base64')
    const known = verified.get(hash)
    if (known && known.until > now()) return known.principal
    verified.delete(hash)
    const fresh = await verify(token)
    verified.set(hash, fresh)
    // Entries live for at most one minute, so dropping the oldest is as good as dropping the least used.
    if (verified.size > CACHE_SIZE) for (const oldest of verified.keys().take(1)) verified.delete(oldest)
    return fresh.principal
  }
}

/** Returns the unverified claim `iss`, which only selects the key set. */
function issuerOf(token: string): string {
  let payload: JWTPayload
  try {
    payload = decodeJwt(token)
  } catch (cause) {
    throw new AuthenticationError('invalid', { cause })
  }
  return typeof payload.iss === 'string' ? payload.iss : ''
}

function principalOf({ name, own }: IssuerConfig, claims: z.output<typeof Claims>): Principal {
  const home = claims[NAMESPACE_CLAIM]
  const groups = claims.groups.map((group) => `${name}:${group}`)
  const roleGroups = own ? ownGroup(claims[ROLE_CLAIM], home) : []
  return { user: `${name}:${claims.sub}`, groups: [...groups, ...roleGroups], ...(home === undefined ? {} : { home }) }
}

function ownGroup(claim: unknown, home: string | undefined): readonly string[] {
  const { data: role, success } = OwnRole.safeParse(claim)
  if (!success) throw new AuthenticationError('invalid')
  if (role === undefined) return []
  if (role === PLATFORM_ADMIN) return [PLATFORM_ADMIN_GROUP]
  const at = parseNamespacePath(home ?? '')
  if (!at) throw new AuthenticationError('invalid')
  return [roleGroup(namespaceName(at.organization, at.namespace), role)]
}

function toAuthenticationError(cause: unknown): unknown {
  if (cause instanceof errors.JWTExpired) return new AuthenticationError('expired', { cause })
  if (cause instanceof errors.JWTClaimValidationFailed && cause.claim === 'nbf' && cause.reason === 'check_failed') {
    return new AuthenticationError('not_yet_valid', { cause })
  }
  return cause instanceof errors.JOSEError ? new AuthenticationError('invalid', { cause }) : cause
}
