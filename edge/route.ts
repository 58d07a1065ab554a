import type { TunnelConfig } from '../crds/tunnel-config.ts'
import type { AddressList } from '../crds/formats/address-list.ts'

/** A temporary password of a tunnel. */
export interface RoutedPassword {
  /** uid of its TunnelPassword */
  readonly id: string
  readonly sha256: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** A tunnel as an edge serves it: its config, made ready once a change instead of once a request. */
export interface Route {
  /** uid of its Tunnel */
  readonly id: string
  readonly namespace: string
  readonly name: string
  readonly hostname: string
  /** `{hostname}.{domain}` */
  readonly host: string
  /** `https://{hostname}.{domain}`: what its user is told. */
  readonly url: string
  readonly config: TunnelConfig
  readonly ingress: AddressList
  readonly sshSources: AddressList
  /** Oldest first, as `livePasswords` takes them; some may have ended, or be too many. */
  readonly passwords: readonly RoutedPassword[]
  /** When its certificate was obtained, RFC 3339 UTC: another time is another certificate. */
  readonly certifiedAt?: string | undefined
}

/** The tunnels of one endpoint, from the last known state of the resources. */
export interface Routes {
  /** Domain of the endpoint. */
  readonly domain: string
  get(hostname: string): Route | undefined
  /** Called with the hostname of a tunnel that came, changed or went. Returns how to stop that. */
  onChange(listener: (hostname: string) => void): () => void
}

/** Those that can say which tunnels there are. */
export interface ListedRoutes extends Routes {
  hostnames(): Iterable<string>
}

/** Lookup of the tunnels that list a public key, for a login whose user names no tunnel. */
export interface KeyRoutes {
  /** At most `most` tunnels that list the key in `authorizedKeys`; in no order. */
  ofKey(key: { readonly type: string; readonly blob: Buffer }, most: number): readonly Route[]
}

/** Lookups of the SSH side. */
export type LoginRoutes = Routes & PasswordRoutes & KeyRoutes

/** What the SSH side asks beside: a temporary password names its tunnel to whoever does not name one as the user (surface, "SSH"). */
export interface PasswordRoutes {
  /**
   * The only tunnel that has a password with this SHA-256 (64 lower-case hexadecimal digits), expired or not. A hash can be read and put
   * beside another tunnel, so that one of several tunnels names none of them.
   */
  ofPassword(sha256: string): Route | undefined
}
