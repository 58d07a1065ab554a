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

/** An issuer's keys: published at a URL, or known here. */
export type KeySource =
  | { readonly url: URL }
  | { readonly jwks: JSONWebKeySet }
  /** Where the set is published has to be found out first. @throws ApiError `unavailable` while it cannot be; it is called again then */
  | { readonly find: () => Promise<URL> }

const TIMEOUT_MS = 3_000
/** An unknown key id asks the issuer anew at most this often; so does an issuer that does not answer. */
const COOLDOWN_MS = 30_000
const FAILED_COOLDOWN_MS = 5_000
const MAX_AGE_MS = 600_000
const MAX_BYTES = 1_048_576

/**
 * Keys of one issuer. A published set is fetched when first needed, again after 10 minutes or at an unknown key id. While the
 * issuer cannot be reached, keys known from before stay good.
 * @throws (from the function) ApiError `unavailable` when the issuer cannot be reached and the key is not known
 */
export function createKeySet(source: KeySource): JWTVerifyGetKey {
  if ('jwks' in source) return createLocalJWKSet(source.jwks)
  return 'find' in source ? foundKeySet(source.find) : remoteKeySet(source.url)
}

function foundKeySet(find: () => Promise<URL>): JWTVerifyGetKey {
  let keyOf: JWTVerifyGetKey | undefined
  return async function keyOfFound(header, token) {
    if (!keyOf) {
      const url = await find()
      keyOf ??= remoteKeySet(url)
    }
    return keyOf(header, token)
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
        if (isAnswer(error)) throw error
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

/** True when the keys were at hand and the answer is that none, or not just one, fits. */
function isAnswer(error: unknown): boolean {
  return error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys
}

/** `fetch` of a document that is small: one without an end must not fill the memory. @throws Error when it is not */
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
