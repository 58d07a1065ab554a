import type { SecureClientSessionOptions } from 'node:http2'
import type { RequestOptions } from 'node:https'
import { type Clock, systemClock } from '../clock.ts'
import type { ClusterConfig } from './cluster-config.ts'

/** How this process proves to the API server who it is, and how it knows the API server. */
export interface Credentials {
  readonly tls: Pick<SecureClientSessionOptions, 'ca' | 'cert' | 'key' | 'servername' | 'rejectUnauthorized'>
  /** `authorization` and impersonation, names in lower case. */
  readonly headers: Readonly<Record<string, string>>
}

export interface CredentialSource {
  /** @throws whatever reading a file or running a credential plugin fails with */
  current(): Promise<Credentials>
  /** The next `current` reads anew: the API server did not accept the last ones. */
  forget(): void
}

/** Short against the life of any token: the kubelet puts a new one in place when a fifth of the old one's life is left. */
const FRESH_MS = 10_000

/** Credentials of the config's current context: certificates, tokens (from files that rotate too), credential plugins. */
export function createCredentialSource(config: ClusterConfig, clock: Clock = systemClock): CredentialSource {
  let known: { readonly credentials: Promise<Credentials>; readonly since: number } | undefined

  return {
    current() {
      if (!known || clock.now() - known.since > FRESH_MS) {
        const credentials = read(config)
        known = { credentials, since: clock.now() }
        // A failure is not kept: the next caller tries again.
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
    // A token file may end with a line break, which no header may hold.
    if (typeof value === 'string') headers[name.toLowerCase()] = value.trim()
  }
  if (options.auth) headers.authorization = `Basic ${Buffer.from(options.auth).toString('base64')}`
  const { ca, cert, key, servername, rejectUnauthorized } = options
  const given = Object.entries({ ca, cert, key, servername, rejectUnauthorized }).filter(([, value]) => value !== undefined)
  return { tls: Object.fromEntries(given), headers }
}
