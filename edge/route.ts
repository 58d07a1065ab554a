import type { TunnelConfig } from '../crds/tunnel-config.ts'
import type { AddressList } from '../crds/formats/address-list.ts'

/** Temporary password of a tunnel or a database. */
export interface RoutedPassword {
  /** uid of the TunnelPassword. */
  readonly id: string
  readonly sha256: string
  /** Expiry in milliseconds since the epoch. */
  readonly expiresAt: number
}

/** Address of a database server. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
  /** Local address of the connections; undefined: the choice of the machine. */
  readonly source?: string | undefined
}

/** Dedicated database that a login opens. */
export interface RoutedDatabase {
  /** Usual port of its engine: the only one that clients may name. */
  readonly port: number
  /** Address of its server. Undefined until the server runs. */
  readonly server: ServerAddress | undefined
  /** Name of the server in the cluster, which clients may name in place of `db`. Absent in embedded mode. */
  readonly internalHost?: string | undefined
}

/**
 * Tunnel as an edge serves it, with its config prepared once a change instead of once a request; or the SSH tunnel of a database, which has
 * no visitors.
 */
export interface Route {
  /** uid of the Tunnel or DedicatedDatabase. */
  readonly id: string
  readonly namespace: string
  readonly name: string
  readonly hostname: string
  /** `{hostname}.{domain}` */
  readonly host: string
  /** `https://{hostname}.{domain}`, as shown to the tenant. */
  readonly url: string
  readonly config: TunnelConfig
  /** Set for a database, absent for a tunnel. */
  readonly database?: RoutedDatabase | undefined
  readonly ingress: AddressList
  readonly sshSources: AddressList
  /** Passwords, oldest first, as `livePasswords` takes them. Some may have expired or exceed the limit. */
  readonly passwords: readonly RoutedPassword[]
  /** Time at which the certificate was obtained, RFC 3339 UTC. A different time means a different certificate. */
  readonly certifiedAt?: string | undefined
  /** Token of the ACME challenge that edges answer for the host (RFC 8555, section 8.3). */
  readonly challengeToken?: string | undefined
}

/** Tunnels and databases of one endpoint, from the last known state of the resources. */
export interface Routes {
  /** Domain of the endpoint. */
  readonly domain: string
  get(hostname: string): Route | undefined
  /** Calls `listener` with the hostname of each route that is added, changed or removed. Returns the unsubscribe function. */
  onChange(listener: (hostname: string) => void): () => void
}

/** Routes that can be enumerated. */
export interface ListedRoutes extends Routes {
  hostnames(): Iterable<string>
}

/** Lookup of the tunnels that list a public key, for a login whose user name is not a tunnel. */
export interface KeyRoutes {
  /** Returns at most `limit` tunnels that list the key in `authorizedKeys`, in no particular order. */
  ofKey(key: { readonly type: string; readonly blob: Buffer }, limit: number): readonly Route[]
}

/** Lookups of the SSH server. */
export type LoginRoutes = Routes & PasswordRoutes & KeyRoutes

/** Lookup of a tunnel by a temporary password, for a login whose user name is not a tunnel (docs/ssh-logins.md). */
export interface PasswordRoutes {
  /**
   * Returns the only tunnel that has a password with this SHA-256 (64 lower-case hexadecimal digits), expired or not. Returns undefined
   * when several tunnels have it: a tenant may copy a hash that it can read to another tunnel.
   */
  ofPassword(sha256: string): Route | undefined
}
