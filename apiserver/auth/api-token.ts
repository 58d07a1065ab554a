import { createHash, hkdfSync, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { type ApiToken, endOfApiToken } from '../../crds/api-token.ts'
import type { Namespace } from '../../crds/core.ts'
import { labels, roleGroup } from '../../crds/names.ts'
import type { Cache } from '../../store/cache.ts'
import { type CatchUp, createCatchUp } from '../resources/cache-waits.ts'
import type { Principal } from '../http/route.ts'
import { API_TOKEN_PREFIX, AuthenticationError } from './authenticate.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const SECRET_LENGTH = 40
const CHECKSUM_LENGTH = 6
const FORM = /^moor_([0-9A-Za-z]{40})([0-9A-Za-z]{6})$/
/** Bound below which a random byte is used: below 248 = 4 × 62, every remainder modulo 62 is equally likely. */
const UNBIASED_BELOW = 248
/** Random bytes drawn for one token: the probability of fewer than 40 usable ones among 128 is below 2^-300. */
const DRAWN_BYTES = 128

/** Creates an API token: `moor_`, 40 base62 characters from the CSPRNG (238 bits) and 6 of checksum. */
export function randomApiToken(): string {
  return tokenOf(randomBytes(DRAWN_BYTES))
}

/**
 * Derives an API token from `salt` and the installation's secret (HKDF-SHA-256, RFC 5869). A request with a repeated Idempotency-Key gets the
 * same token again although no token is stored.
 */
export function deriveApiToken(secret: Uint8Array, salt: string): string {
  return tokenOf(new Uint8Array(hkdfSync('sha256', secret, salt, 'mooring api token', DRAWN_BYTES)))
}

/** Whether `text` has the form of an API token and a valid checksum. */
export function isApiToken(text: string): boolean {
  const [, secret, checksum] = FORM.exec(text) ?? []
  return secret !== undefined && checksumOf(secret) === checksum
}

/** Returns the hash under which a token is stored, in lower-case hex. 238 random bits need no slow hash. */
export function sha256OfToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

function tokenOf(bytes: Uint8Array): string {
  const secret = [...bytes]
    .filter((byte) => byte < UNBIASED_BELOW)
    .slice(0, SECRET_LENGTH)
    .map((byte) => BASE62.charAt(byte % BASE62.length))
    .join('')
  if (secret.length < SECRET_LENGTH) throw new Error('too few usable random bytes')
  return `${API_TOKEN_PREFIX}${secret}${checksumOf(secret)}`
}

/** CRC-32 of the 40 characters as 6 zero-padded base62 digits; it detects typing errors without a lookup. */
function checksumOf(secret: string): string {
  let rest = crc32(secret)
  let digits = ''
  while (digits.length < CHECKSUM_LENGTH) {
    digits = BASE62.charAt(rest % BASE62.length) + digits
    rest = Math.floor(rest / BASE62.length)
  }
  return digits
}

/** Indexes that the ApiToken cache of {@link createApiTokenVerifier} needs. */
export const apiTokenIndexes = { sha256: (token: ApiToken): readonly string[] => [token.spec.sha256] }

export interface ApiTokenDeps {
  /** Cache with {@link apiTokenIndexes}. */
  readonly apiTokens: Cache<typeof ApiToken>
  readonly namespaces: Cache<typeof Namespace>
  readonly now?: () => number
  /** Absent where no other process creates API tokens. */
  readonly catchUp?: CatchUp
}

/** Creates the function that resolves an API token to its principal. @throws (from the function) AuthenticationError */
export function createApiTokenVerifier({ apiTokens, namespaces, now = Date.now, catchUp = createCatchUp(0) }: ApiTokenDeps) {
  return async function verifyApiToken(token: string): Promise<Principal> {
    const lookUp = () => onlyOne(apiTokens.byIndex('sha256', sha256OfToken(token)))
    const object = isApiToken(token) ? await catchUp(apiTokens, lookUp) : undefined
    if (!object || object.metadata.deletionTimestamp !== undefined) throw new AuthenticationError('invalid')
    if (endOfApiToken(object) <= now()) throw new AuthenticationError('expired')
    const namespace = object.metadata.namespace ?? ''
    const slugs = namespaces.get({ name: namespace })?.metadata.labels ?? {}
    const organization = slugs[labels.organization]
    const slug = slugs[labels.namespace]
    if (organization === undefined || slug === undefined) throw new AuthenticationError('invalid')
    return {
      user: `mooring:api-token:${object.metadata.uid}`,
      groups: [roleGroup(namespace, object.spec.role)],
      home: `${organization}/${slug}`,
    }
  }
}

/**
 * Returns the ApiToken of a hash, or undefined when ApiTokens of several namespaces have it. A viewer can read a hash and copy it into an ApiToken
 * of another namespace; the token's owner would then work in that namespace without noticing.
 */
function onlyOne(sameHash: readonly ApiToken[]): ApiToken | undefined {
  return new Set(sameHash.map(({ metadata }) => metadata.namespace)).size === 1 ? sameHash[0] : undefined
}
