import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
} from 'jose'
import type { Logger } from 'pino'
import { z } from 'zod'
import { ApiError } from '../http/errors.ts'
import type { NamedIssuer } from '../../process/setting-rules.ts'

/** Trusted issuer of tokens. Users and groups of its tokens are `{name}:…`. */
export interface IssuerConfig {
  readonly name: string
  /** Exact value of the claim `iss`. */
  readonly issuer: string
  readonly keys: KeySource
  /** Required audience; `mooring` when absent. */
  readonly audience?: string
  /** Whether this is Mooring's own issuer, whose claim `mooring_role` is used. */
  readonly own?: boolean
}

/** Source of an issuer's keys: a URL, a local key set, or a function that discovers the URL. */
type KeySource =
  | { readonly url: URL }
  | { readonly jwks: JSONWebKeySet }
  /** Discovers the URL of the key set. Called again after a failure. @throws ApiError `unavailable` */
  | { readonly find: () => Promise<URL> }

const DISCOVERY_TIMEOUT_MS = 5_000
/** Minimum time after a failed discovery; the first token after it triggers the next attempt. */
const DISCOVERY_COOLDOWN_MS = 5_000
const Document = z.object({ issuer: z.string(), jwks_uri: z.url() })

export interface OutsideIssuersDeps {
  readonly issuers: readonly NamedIssuer[]
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly fetch?: typeof globalThis.fetch
  /** Returns the milliseconds of a monotonic clock. */
  readonly now?: () => number
}

/**
 * Creates the configurations of external issuers and discovers their key URLs (OpenID Connect Discovery 1.0, section 4). A failed discovery is
 * repeated when a token of that issuer arrives, so an unreachable issuer affects only its own tokens.
 */
export function createOutsideIssuers(deps: OutsideIssuersDeps): readonly IssuerConfig[] {
  return deps.issuers.map((issuer) => {
    const { discover, find } = createFinder(issuer, deps)
    void discover()
    return { name: issuer.name, issuer: issuer.url, keys: { find } }
  })
}

/**
 * Creates the discovery of one issuer. `discover` fetches the document unless the URL is known or the cooldown runs; it never rejects.
 * `find` returns the URL or throws ApiError `unavailable`.
 */
function createFinder({ name, url }: NamedIssuer, deps: OutsideIssuersDeps) {
  const { log, fetch = globalThis.fetch, now = () => performance.now() } = deps
  let found: URL | undefined
  let inFlight: Promise<URL | undefined> | undefined
  let failedAt = -Infinity

  async function fetchKeysUrl(): Promise<URL | undefined> {
    try {
      const answer = await fetch(`${url.replace(/\/$/, '')}/.well-known/openid-configuration`, {
        redirect: 'error',
        signal: AbortSignal.timeout(DISCOVERY_TIMEOUT_MS),
      })
      const { issuer, jwks_uri } = Document.parse(await answer.json())
      if (issuer !== url) {
        // OpenID Connect Discovery 1.0, section 4.3: the document must name the issuer that was configured.
        log.warn(
          { issuer: name, url, calledItself: issuer },
          'the discovery document names another issuer URL; configure the issuer with that URL',
        )
        return undefined
      }
      log.info({ issuer: name }, 'issuer discovered')
      return new URL(jwks_uri)
    } catch (error) {
      log.warn({ err: error, issuer: name, url }, 'issuer discovery failed; the next token of the issuer retries it')
      return undefined
    }
  }

  async function discover(): Promise<URL | undefined> {
    if (found || now() - failedAt < DISCOVERY_COOLDOWN_MS) return found
    inFlight ??= fetchKeysUrl()
    found = await inFlight
    inFlight = undefined
    if (!found) failedAt = now()
    return found
  }

  async function find(): Promise<URL> {
    const url = await discover()
    if (url) return url
    throw new ApiError('unavailable', 'the issuer of the token cannot be reached to find its keys')
  }

  return { discover, find }
}

const FETCH_TIMEOUT_MS = 3_000
/** Minimum time between two fetches caused by an unknown key id. */
const FETCH_COOLDOWN_MS = 30_000
/** Minimum time after a failed fetch before the next one. */
const FAILED_FETCH_COOLDOWN_MS = 5_000
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
    timeoutDuration: FETCH_TIMEOUT_MS,
    cooldownDuration: FETCH_COOLDOWN_MS,
    cacheMaxAge: MAX_AGE_MS,
    [customFetch]: fetchSmall,
  })
  let failedAt = -Infinity

  return async function keyOf(header, token) {
    let cause: unknown
    if (performance.now() - failedAt >= FAILED_FETCH_COOLDOWN_MS) {
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
