import type { SecureClientSessionOptions } from 'node:http2'
import type { RequestOptions } from 'node:https'
import { type Clock, systemClock } from '../clock.ts'
import type { ClusterConfig } from './cluster-config.ts'

/** Credentials of this process, and the certificates that verify the API server. */
export interface Credentials {
  readonly tls: Pick<SecureClientSessionOptions, 'ca' | 'cert' | 'key' | 'servername' | 'rejectUnauthorized'>
  /** Headers for authorization and impersonation; names in lower case. */
  readonly headers: Readonly<Record<string, string>>
}

export interface CredentialSource {
  /** Returns the credentials. @throws the error of reading a file or running a credential plugin */
  current(): Promise<Credentials>
  /** Drops the credentials after the API server has rejected them; the next `current` reads them again. */
  forget(): void
}

/** Time for which credentials are cached. It is short compared with tokens: kubelet renews one when 20 % of its lifetime is left. */
const FRESH_MS = 10_000

/** Creates the source of credentials of the config's current context: certificates, tokens (also from rotated files), credential plugins. */
export function createCredentialSource(config: ClusterConfig, clock: Clock = systemClock): CredentialSource {
  let known: { readonly credentials: Promise<Credentials>; readonly since: number } | undefined

  return {
    current() {
      if (!known || clock.now() - known.since > FRESH_MS) {
        const credentials = read(config)
        known = { credentials, since: clock.now() }
        // A failure is not cached: the next call tries again.
        credentials.catch(() => {
          if (known?.credentials === credentials) known = undefined
        })
      }
      return known.credentials
    },
    forget() {
      known = undefined
    },
  }
}

async function read(config: ClusterConfig): Promise<Credentials> {
  const options: RequestOptions = { headers: {} }
  await config.applyToHTTPSOptions(options)
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    // A token file may end with a line break, which is invalid in a header.
    if (typeof value === 'string') headers[name.toLowerCase()] = value.trim()
  }
  if (options.auth) headers.authorization = `Basic ${Buffer.from(options.auth).toString('base64')}`
  const { ca, cert, key, servername, rejectUnauthorized } = options
  const given = Object.entries({ ca, cert, key, servername, rejectUnauthorized }).filter(([, value]) => value !== undefined)
  return { tls: Object.fromEntries(given), headers }
}
