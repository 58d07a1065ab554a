import { timingSafeEqual } from 'node:crypto'
import { type Tunnel, HOSTNAME, type TunnelReason } from '../../crds/tunnel.ts'
import { takesTunnels, type TunnelEndpoint, EndpointReason } from '../../crds/tunnel-endpoint.ts'
import { annotations, labels, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { headerValuesSecret, ownCertificate, sharedCertificate } from '../../shared/edge-objects.ts'
import { encodeSecret } from '../secret-data.ts'
import { hasReferences } from './header-values.ts'
import type { KeyPair } from '../certificates/local-ca.ts'
import { ownersOf } from '../endpoint/runtime.ts'
import type { Key } from '../../store/port.ts'
import { notReady, type Decision } from '../../store/conditions.ts'

/** Host of a tunnel: `{hostname}.{domain}`. */
export function hostOf({ spec }: TunnelEndpoint, hostname: string): string {
  return `${hostname}.${spec.domain}`
}

/** Public URL of a tunnel, always without a port (docs/api.md, "Tunnels"). */
export function urlOf(endpoint: TunnelEndpoint, hostname: string): string {
  return `https://${hostOf(endpoint, hostname)}`
}

/** Name in the tunnel's certificate. */
export function certificateName(endpoint: TunnelEndpoint, hostname: string): string {
  return endpoint.spec.certificates === 'wildcard' ? `*.${endpoint.spec.domain}` : hostOf(endpoint, hostname)
}

/** Key of the Secret with the tunnel's certificate, which all tunnels of an endpoint may share. */
export function certificateKey(endpoint: TunnelEndpoint, hostname: string) {
  const name = endpoint.spec.certificates === 'wildcard' ? sharedCertificate(endpoint.metadata.name) : ownCertificate(hostname)
  return { namespace: SYSTEM_NAMESPACE, name }
}

/** Names of the Secrets that an endpoint's edges read, sorted, so that equal sets are equal objects. */
export function certificatesOf(endpoint: TunnelEndpoint, tunnels: readonly Tunnel[]): readonly string[] {
  const names = tunnels.flatMap((tunnel) => {
    const { hostname } = tunnel.status ?? {}
    if (hostname === undefined) return []
    const { name } = certificateKey(endpoint, hostname)
    return hasReferences(tunnel) ? [name, headerValuesSecret(hostname)] : [name]
  })
  return [...new Set(names)].sort()
}

/** Certificate for a Secret. */
export interface SignedCertificate extends KeyPair {
  readonly at: Date
  /** Name of the administrator's own Secret that it is a copy of. */
  readonly copiedFrom?: string | undefined
  /** Directory of the CA and identifier of the certificate, of one that was obtained by ACME. */
  readonly acme?: { readonly directory: string; readonly id: string | undefined } | undefined
}

/** Secret with the certificate and key of a host. */
export function certificateSecret(endpoint: TunnelEndpoint, hostname: string, signed: SignedCertificate) {
  const { certificate, key, at, acme, copiedFrom } = signed
  const { directory, id } = acme ?? {}
  return {
    metadata: {
      ...certificateKey(endpoint, hostname),
      labels: { [labels.endpoint]: endpoint.metadata.name },
      annotations: {
        [annotations.obtainedAt]: at.toISOString(),
        ...(directory !== undefined && { [annotations.acmeDirectory]: directory }),
        ...(id !== undefined && { [annotations.acmeId]: id }),
        ...(copiedFrom !== undefined && { [annotations.copiedFrom]: copiedFrom }),
      },
      ...(endpoint.spec.certificates === 'wildcard' && { ownerReferences: ownersOf(endpoint) }),
    },
    type: 'kubernetes.io/tls',
    data: encodeSecret({ 'tls.crt': certificate, 'tls.key': key }),
  }
}

/** Active endpoints of a region that have edges, fewest tunnels first, then by name. */
export function candidatesOf(
  endpoints: readonly TunnelEndpoint[],
  region: string,
  tunnelsOn: (endpoint: string) => number,
): readonly TunnelEndpoint[] {
  return endpoints
    .filter((endpoint) => takesTunnels(endpoint) && endpoint.spec.region === region)
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map((endpoint) => ({ endpoint, tunnels: tunnelsOn(endpoint.metadata.name) }))
    .sort((a, b) => a.tunnels - b.tunnels || a.endpoint.metadata.name.localeCompare(b.endpoint.metadata.name))
    .map(({ endpoint }) => endpoint)
}

/** MAC of this installation for a text: base64url, without padding. */
export type Mac = (text: string) => string

/** Tunnel's key and annotations. */
interface Marked extends Key {
  readonly annotations?: Readonly<Record<string, string>>
}

/**
 * Value of the annotation `mooring.dev/hostname`, `{hostname}.{MAC}`, by which a tunnel restored from a backup keeps its hostname. It is
 * valid only for this namespace and name, with any uid: a copy on another tunnel has no effect.
 */
export function hostnameMark(mac: Mac, tunnel: Key, hostname: string): string {
  return `${hostname}.${mac(claimOf(tunnel, hostname))}`
}

/** Hostname of a mark; undefined when the mark was not made for this tunnel by this installation. */
export function markedHostname(mac: Mac, tunnel: Marked): string | undefined {
  const mark = tunnel.annotations?.[annotations.hostname] ?? ''
  const [hostname = ''] = mark.split('.')
  if (!HOSTNAME.test(hostname)) return undefined
  return isSame(mark, hostnameMark(mac, tunnel, hostname)) ? hostname : undefined
}

/** Authenticated text. Its first element separates it from other texts authenticated with the same key. */
const claimOf = ({ namespace = '', name }: Key, hostname: string): string =>
  JSON.stringify(['hostname of a tunnel', namespace, name, hostname])

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/**
 * Condition of an endpoint for whose tunnels no certificate can be obtained, and of its tunnels without a certificate. Its reason is part of
 * EndpointReason and TunnelReason.
 */
export const ISSUER_MISSING: Decision = notReady(
  EndpointReason.IssuerMissing satisfies typeof TunnelReason.IssuerMissing,
  'issuer acme needs spec.acme with agreeToTerms: true, which accepts the terms of service of the certificate authority',
)
