import { addressList } from '../crds/formats/address-list.ts'
import type { Tunnel } from '../crds/tunnel.ts'
import type { TunnelConfig } from '../crds/tunnel-config.ts'
import type { PasswordOwner } from '../shared/live-passwords.ts'
import type { Route, RoutedPassword } from './route.ts'

/** Facts that a route needs in addition to its resource. */
export interface RouteAbout {
  /** Name of the TunnelEndpoint that is served. */
  readonly endpoint: string
  readonly domain: string
  readonly passwordsOf: (owner: PasswordOwner) => readonly RoutedPassword[]
  /** Returns the config of a tunnel with literal header values. Absent: headers whose value comes from a Secret are removed. */
  readonly configOf?: ((tunnel: Tunnel, hostname: string) => TunnelConfig) | undefined
}

/** Returns the route of a tunnel; undefined when it has another endpoint, no hostname, or is being deleted. */
export function tunnelRoute(tunnel: Tunnel | undefined, about: RouteAbout): Route | undefined {
  const { endpoint, domain, passwordsOf, configOf = specConfig } = about
  if (!tunnel || tunnel.metadata.deletionTimestamp !== undefined) return undefined
  const { hostname, endpointRef } = tunnel.status ?? {}
  if (hostname === undefined || endpointRef?.name !== endpoint) return undefined
  const config = configOf(tunnel, hostname)
  const host = `${hostname}.${domain}`
  return {
    id: tunnel.metadata.uid,
    namespace: tunnel.metadata.namespace ?? '',
    name: tunnel.metadata.name,
    hostname,
    host,
    url: `https://${host}`,
    config,
    ingress: addressList(config.ingressIPWhitelist),
    sshSources: addressList(config.sshIPWhitelist),
    passwords: passwordsOf(tunnel),
    certifiedAt: certifiedAtOf(tunnel),
    challengeToken: challengeTokenOf(tunnel),
  }
}

const specConfig = ({ spec }: Tunnel): TunnelConfig => spec.config
const certifiedAtOf = ({ status }: Tunnel): string | undefined => status?.certificate?.obtainedAt
const challengeTokenOf = ({ status }: Tunnel): string | undefined => status?.certificate?.acme?.token
