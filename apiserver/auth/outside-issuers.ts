import type { Logger } from 'pino'
import { z } from 'zod'
import type { NamedIssuer } from '../../process/setting-rules.ts'
import { ApiError } from '../http/errors.ts'
import type { IssuerConfig } from './jwt.ts'

const TIMEOUT_MS = 5_000
/** An issuer that does not answer is asked again by the first token after this time. */
const COOLDOWN_MS = 5_000
const Document = z.object({ issuer: z.string(), jwks_uri: z.url() })

export interface OutsideIssuersDeps {
  readonly issuers: readonly NamedIssuer[]
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly fetch?: typeof globalThis.fetch
  /** Milliseconds of a clock that does not go back. */
  readonly now?: () => number
}

/**
 * Issuers beside Mooring's own. Where each publishes its keys is asked of it (OpenID Connect Discovery 1.0, section 4) at once, and
 * again by tokens of it for as long as it does not answer: one that is down holds up nothing but its own tokens.
 */
export function createOutsideIssuers(deps: OutsideIssuersDeps): readonly IssuerConfig[] {
  return deps.issuers.map((issuer) => {
    const { look, find } = createFinder(issuer, deps)
    void look()
    return { name: issuer.name, issuer: issuer.url, keys: { find } }
  })
}

/** `look` asks unless it is known or was asked just now, and never rejects; `find` does and rejects with what a caller is told. */
function createFinder({ name, url }: NamedIssuer, deps: OutsideIssuersDeps) {
  const { log, fetch = globalThis.fetch, now = () => performance.now() } = deps
  let found: URL | undefined
  let asking: Promise<URL | undefined> | undefined
  let failedAt = -Infinity

  async function ask(): Promise<URL | undefined> {
    try {
      const answer = await fetch(`${url.replace(/\/$/, '')}/.well-known/openid-configuration`, {
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      const { issuer, jwks_uri } = Document.parse(await answer.json())
      if (issuer !== url) {
        // Section 4.3: its tokens carry that name, and a document of somebody else's must not be believed.
        log.warn({ issuer: name, url, calledItself: issuer }, 'an issuer calls itself by another name: give it by that one')
        return undefined
      }
      log.info({ issuer: name }, 'an issuer was found')
      return new URL(jwks_uri)
    } catch (error) {
      log.warn({ err: error, issuer: name, url }, 'an issuer does not answer with its discovery document; it is asked again')
      return undefined
    }
  }

  async function look(): Promise<URL | undefined> {
    if (found || now() - failedAt < COOLDOWN_MS) return found
    asking ??= ask()
    found = await asking
    asking = undefined
    if (!found) failedAt = now()
    return found
  }

  async function find(): Promise<URL> {
    const at = await look()
    if (at) return at
    throw new ApiError('unavailable', 'the issuer of the token cannot be reached to find its keys')
  }

  return { look, find }
}
