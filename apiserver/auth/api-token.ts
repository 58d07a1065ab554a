import { createHash, hkdfSync, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { type ApiToken, endOfApiToken } from '../../crds/api-token.ts'
import type { Namespace } from '../../crds/core.ts'
import { labels, roleGroup } from '../../crds/names.ts'
import type { Cache } from '../../store/cache.ts'
import { type CatchUp, createCatchUp } from '../resources/catch-up.ts'
import type { Principal } from '../http/route.ts'
import { AuthenticationError } from './authentication-error.ts'

export const API_TOKEN_PREFIX = 'moor_'
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const SECRET_LENGTH = 40
const CHECKSUM_LENGTH = 6
const FORM = /^moor_([0-9A-Za-z]{40})([0-9A-Za-z]{6})$/
/** Of a byte below 248 = 4 × 62 each remainder is equally likely; higher ones are thrown away. */
const UNBIASED_BELOW = 248
/** 40 usable bytes of 128 are missing with a chance below 2^-300. */
const DRAWN_BYTES = 128

/** A new API token: `moor_`, 40 base62 characters from the CSPRNG (238 bits), 6 of checksum. */
export function randomApiToken(): string {
  return tokenOf(randomBytes(DRAWN_BYTES))
}

/**
 * The API token that belongs to `salt` under the installation's secret (HKDF-SHA-256, RFC 5869): lets a repeated Idempotency-Key be
 * answered with the same token, which is stored nowhere.
 */
export function deriveApiToken(secret: Uint8Array, salt: string): string {
  return tokenOf(new Uint8Array(hkdfSync('sha256', secret, salt, 'mooring api token', DRAWN_BYTES)))
}

/** True when `text` has the form of an API token and its checksum fits: worth a lookup. */
export function isApiToken(text: string): boolean {
  const [, secret, checksum] = FORM.exec(text) ?? []
  return secret !== undefined && checksumOf(secret) === checksum
}

/** What is stored of a token: lower-case hex. 238 random bits need no slow hash. */
export function sha256OfToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

function tokenOf(bytes: Uint8Array): string {
  const secret = [...bytes]
    .filter((byte) => byte < UNBIASED_BELOW)
    .slice(0, SECRET_LENGTH)
    .map((byte) => BASE62.charAt(byte % BASE62.length))
    .join('')
  if (secret.length < SECRET_LENGTH) throw new Error('too few of the drawn bytes are usable')
  return `${API_TOKEN_PREFIX}${secret}${checksumOf(secret)}`
}

/** CRC-32 of the 40 characters, as 6 base62 digits, zero-padded (the scheme of GitHub's tokens): finds typos without a lookup. */
function checksumOf(secret: string): string {
  let rest = crc32(secret)
  let digits = ''
  while (digits.length < CHECKSUM_LENGTH) {
    digits = BASE62.charAt(rest % BASE62.length) + digits
    rest = Math.floor(rest / BASE62.length)
  }
  return digits
}

/** Indexes that the ApiToken cache of {@link createApiTokenVerifier} must be made with. */
export const apiTokenIndexes = { sha256: (token: ApiToken): readonly string[] => [token.spec.sha256] }

export interface ApiTokenDeps {
  /** With {@link apiTokenIndexes}. */
  readonly apiTokens: Cache<typeof ApiToken>
  readonly namespaces: Cache<typeof Namespace>
  readonly now?: () => number
  /** None where this process alone creates. */
  readonly catchUp?: CatchUp
}

/** Turns an API token into its principal. @throws AuthenticationError */
export function createApiTokenVerifier({ apiTokens, namespaces, now = Date.now, catchUp = createCatchUp(0) }: ApiTokenDeps) {
  return async function verifyApiToken(token: string): Promise<Principal> {
    const look = () => onlyOne(apiTokens.byIndex('sha256', sha256OfToken(token)))
    const object = isApiToken(token) ? await catchUp(apiTokens, look) : undefined
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
 * The one that has its hash. A viewer can read a hash, and put it into a token of another namespace, so that of several namespaces none is meant:
 * whoever holds the token would work in another's without a sign of it.
 */
function onlyOne(alike: readonly ApiToken[]): ApiToken | undefined {
  return new Set(alike.map(({ metadata }) => metadata.namespace)).size === 1 ? alike[0] : undefined
}
