import type { Logger } from 'pino'
import { z } from 'zod'
import type { NamedIssuer } from '../../process/setting-rules.ts'
import { ApiError } from '../http/errors.ts'
import type { IssuerConfig } from './jwt.ts'

const TIMEOUT_MS = 5_000
/** Minimum time after a failed discovery; the first token after it triggers the next attempt. */
const COOLDOWN_MS = 5_000
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
        signal: AbortSignal.timeout(TIMEOUT_MS),
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
    if (found || now() - failedAt < COOLDOWN_MS) return found
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
