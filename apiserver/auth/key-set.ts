import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
} from 'jose'
import { ApiError } from '../http/errors.ts'

/** Source of an issuer's keys: a URL, a local key set, or a function that discovers the URL. */
export type KeySource =
  | { readonly url: URL }
  | { readonly jwks: JSONWebKeySet }
  /** Discovers the URL of the key set. Called again after a failure. @throws ApiError `unavailable` */
  | { readonly find: () => Promise<URL> }

const TIMEOUT_MS = 3_000
/** Minimum time between two fetches caused by an unknown key id. */
const COOLDOWN_MS = 30_000
/** Minimum time after a failed fetch before the next one. */
const FAILED_COOLDOWN_MS = 5_000
const MAX_AGE_MS = 600_000
const MAX_BYTES = 1_048_576

/**
 * Creates the key lookup of one issuer. A set at a URL is fetched on first use, then again after 10 minutes or for an unknown key id.
 * While the issuer is unreachable, keys fetched before stay valid.
 * @throws (from the function) ApiError `unavailable` when the issuer is unreachable and the key is unknown
 */
export function createKeySet(source: KeySource): JWTVerifyGetKey {
  if ('jwks' in source) return createLocalJWKSet(source.jwks)
  return 'find' in source ? discoveredKeySet(source.find) : remoteKeySet(source.url)
}

function discoveredKeySet(find: () => Promise<URL>): JWTVerifyGetKey {
  let remote: JWTVerifyGetKey | undefined
  return async function keyOf(header, token) {
    if (!remote) {
      const url = await find()
      remote ??= remoteKeySet(url)
    }
    return remote(header, token)
  }
}

function remoteKeySet(url: URL): JWTVerifyGetKey {
  const remote = createRemoteJWKSet(url, {
    timeoutDuration: TIMEOUT_MS,
    cooldownDuration: COOLDOWN_MS,
    cacheMaxAge: MAX_AGE_MS,
    [customFetch]: fetchSmall,
  })
  let failedAt = -Infinity

  return async function keyOf(header, token) {
    let cause: unknown
    if (performance.now() - failedAt >= FAILED_COOLDOWN_MS) {
      try {
        return await remote(header, token)
      } catch (error) {
        if (isKeyMismatch(error)) throw error
        failedAt = performance.now()
        cause = error
      }
    }
    return lastKnown(header, token, cause)
  }

  async function lastKnown(...[header, token, cause]: [...Parameters<JWTVerifyGetKey>, unknown]) {
    const known = remote.jwks()
    try {
      if (known) return await createLocalJWKSet(known)(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
    }
    throw new ApiError('unavailable', 'the issuer of the token cannot be reached to fetch its keys', { cause })
  }
}

/** Whether the key set was available but contains no matching key, or several. */
function isKeyMismatch(error: unknown): boolean {
  return error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys
}

/** Runs `fetch` with a bound on the body, so that an endless response cannot fill the memory. @throws Error past 1 MiB */
const fetchSmall: FetchImplementation = async (url, options) => {
  const response = await fetch(url, options)
  const chunks: Uint8Array[] = []
  let size = 0
  const body: AsyncIterable<Uint8Array> | readonly Uint8Array[] = response.body ?? []
  for await (const chunk of body) {
    size += chunk.length
    if (size > MAX_BYTES) throw new Error('the key set is larger than 1 MiB')
    chunks.push(chunk)
  }
  return new Response(Buffer.concat(chunks), { status: response.status })
}
