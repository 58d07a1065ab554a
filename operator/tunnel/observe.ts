import { Secret } from '../../crds/core.ts'
import { annotations, labels } from '../../crds/names.ts'
import { type Region, regionWithNumber } from '../../crds/region.ts'
import { HostnameKeptReason, type Tunnel, type TunnelCertificate } from '../../crds/tunnel.ts'
import { endpointsInForce, type TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Cache } from '../../store/cache.ts'
import { notReady } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'
import type { Tenancy } from '../namespace/tenancy.ts'
import type { Quota } from '../quota/quota.ts'
import { keyPairIn } from '../secret-data.ts'
import type { Progress } from '../acme/acme.ts'
import { heldByAcme, statedByAcme } from './acme-certificate.ts'
import { heldByEndpoint } from './given-certificate.ts'
import { describe, type Issuers, renewalTime, signsFor } from './certificate-issuer.ts'
import { type HostnameOwners, isHostnameTaken } from './hostnames.ts'
import { markedHostname, candidatesOf, certificateKey, certificateName } from './resources.ts'
import { hasHostname } from './indexes.ts'
import type { HeldCertificate, KeptHostname, Observed } from './plan.ts'

export interface ObserveDeps {
  readonly store: Store
  /** Tunnels, with the indexes of indexes.ts. */
  readonly tunnels: Cache<typeof Tunnel>
  readonly databases: HostnameOwners['databases']
  readonly endpoints: Cache<typeof TunnelEndpoint>
  readonly regions: Cache<typeof Region>
  readonly issuers: Issuers
  readonly now: () => Date
  /** Whether the installation has several organizations, which share the budget of public certificates. Default: it has not. */
  readonly isShared?: (() => boolean) | undefined
  /** Default: every Namespace is a tenant's. */
  readonly tenancy?: Pick<Tenancy, 'problemOf'> | undefined
}

export interface AdmitDeps {
  readonly quota: Pick<Quota<Tunnel>, 'admit'>
}

/**
 * Reads the state that a decision about a tunnel depends on. Writes nothing, but admits a tunnel without a hostname if the quota allows it.
 */
export async function observe(deps: ObserveDeps & AdmitDeps, tunnel: Tunnel): Promise<Observed> {
  const { tunnels, endpoints, regions } = deps
  const region = regionWithNumber(regions.list(), tunnel.spec.regionId)
  const { refused, full } = await admissionOf(deps, tunnel)
  const assigned = refused === undefined ? assignedTo(deps, tunnel) : undefined
  const tunnelsOn = (name: string) => tunnels.countByIndex('endpoint', name)
  const isSigned = (endpoint: TunnelEndpoint) => signsFor(deps.issuers, endpoint)
  return {
    tunnel,
    now: deps.now().getTime(),
    refused,
    full,
    region: region !== undefined,
    assigned,
    isSigned: assigned !== undefined && isSigned(assigned),
    candidates: region ? candidatesOf(endpointsInForce(endpoints.list()).filter(isSigned), region.spec.id, tunnelsOn) : [],
    ...(assigned ? await certificateOf(deps, tunnel, assigned) : NO_CERTIFICATE),
    kept: hasHostname(tunnel) ? undefined : keptHostname(deps, tunnel),
  }
}

/** Whether the Namespace of a tunnel is a tenant's, and has room for it. A tunnel that is being deleted needs no admission. */
async function admissionOf(deps: ObserveDeps & AdmitDeps, tunnel: Tunnel): Promise<Pick<Observed, 'refused' | 'full'>> {
  const { namespace, deletionTimestamp } = tunnel.metadata
  if (deletionTimestamp !== undefined) return { full: undefined }
  const refused = await deps.tenancy?.problemOf(namespace)
  return { refused, full: refused !== undefined || hasHostname(tunnel) ? undefined : deps.quota.admit(tunnel) }
}

function assignedTo({ endpoints }: ObserveDeps, { status }: Tunnel): TunnelEndpoint | undefined {
  return status?.endpointRef && endpoints.get({ name: status.endpointRef.name })
}

function keptHostname(deps: ObserveDeps, { metadata }: Tunnel): KeptHostname | undefined {
  if (metadata.annotations?.[annotations.hostname] === undefined) return undefined
  const hostname = markedHostname(deps.issuers.local.mac, metadata)
  if (hostname === undefined) {
    const message = `its annotation ${annotations.hostname} was not made for it by this installation: it gets another hostname`
    return { refused: notReady(HostnameKeptReason.InvalidMark, message) }
  }
  if (!isHostnameTaken(deps, hostname)) return { hostname }
  return {
    refused: notReady(
      HostnameKeptReason.HostnameTaken,
      `another tunnel or database has the hostname ${hostname}: it gets another`,
    ),
  }
}

/**
 * Certificate as recorded in the tunnel's status: reading the Secrets of ten thousand tunnels would take a minute of the operator's start.
 * Undefined when it is not the desired one, or is due for renewal: the Secret is then read. The sweep checks that the Secret exists.
 */
function statedCertificate(
  { issuers, now }: Pick<ObserveDeps, 'issuers' | 'now'>,
  tunnel: Tunnel,
  endpoint: TunnelEndpoint,
): HeldCertificate | undefined {
  const { hostname, certificate: said } = tunnel.status ?? {}
  if (hostname === undefined || said?.status !== 'valid') return undefined
  if (endpoint.spec.issuer === 'acme') {
    return statedByAcme(tunnel, { endpoint, hostname, renewAt: renewAtOf(issuers), now: now().getTime() })
  }
  const issuer = issuers.local.name
  if (said.domain !== certificateName(endpoint, hostname) || said.issuer !== issuer) return undefined
  return believed({ ...timesOf(said), issuer }, { endpoint, hostname, now: now().getTime() })
}

const timesOf = ({ obtainedAt = '', expiresAt = '' }: TunnelCertificate) => ({
  obtainedAt: Date.parse(obtainedAt),
  expiresAt: Date.parse(expiresAt),
})

function believed(
  said: Pick<HeldCertificate, 'obtainedAt' | 'expiresAt' | 'issuer'>,
  about: { readonly endpoint: TunnelEndpoint; readonly hostname: string; readonly now: number },
): HeldCertificate | undefined {
  const { spec, metadata } = about.endpoint
  // A wildcard certificate is owned by its endpoint, and was deleted with an earlier endpoint of the name.
  const isGone = spec.certificates === 'wildcard' && said.obtainedAt < Date.parse(metadata.creationTimestamp)
  const renewAt = renewalTime(said, about.hostname)
  return renewAt > about.now && !isGone ? { ...said, renewAt, fits: true } : undefined
}

const NO_CERTIFICATE = { certificate: undefined, order: undefined }

interface Obtained {
  readonly certificate: HeldCertificate | undefined
  readonly order: Progress | undefined
}

async function certificateOf(deps: ObserveDeps, tunnel: Tunnel, endpoint: TunnelEndpoint): Promise<Obtained> {
  const { hostname } = tunnel.status ?? {}
  if (hostname === undefined || !signsFor(deps.issuers, endpoint)) return NO_CERTIFICATE
  if (endpoint.spec.tlsSecretName !== undefined) return { certificate: heldByEndpoint(endpoint), order: undefined }
  const stated = statedCertificate(deps, tunnel, endpoint)
  if (stated) return { certificate: stated, order: undefined }
  const key = certificateKey(endpoint, hostname)
  const { acme } = endpoint.spec.issuer === 'acme' ? deps.issuers : {}
  // Read first: an order is deleted after its certificate was stored, so one of the two is seen.
  const order = await acme?.progress(key.name)
  const secret = await deps.store.get(Secret, key)
  return { certificate: secret && certificateIn(secret, deps, { endpoint, hostname }), order }
}

const renewAtOf =
  ({ acme }: Issuers) =>
  (id: string): number | undefined =>
    acme?.renewAt(id)

/** Certificate in a Secret; undefined when it is not a certificate. */
export function certificateIn(
  secret: Secret,
  { issuers, now }: Pick<ObserveDeps, 'issuers' | 'now'>,
  { endpoint, hostname }: { readonly endpoint: TunnelEndpoint; readonly hostname: string },
): HeldCertificate | undefined {
  const { metadata } = secret
  const held = { ...keyPairIn(secret), obtainedAt: metadata.annotations?.[annotations.obtainedAt] }
  const name = certificateName(endpoint, hostname)
  try {
    const described =
      endpoint.spec.issuer === 'acme'
        ? heldByAcme(secret, { endpoint, hostname, renewAt: renewAtOf(issuers) })
        : describe(held, { issuer: issuers.local, hostname, name, now: now() })
    // Edges ignore Secrets without the label of their endpoint.
    return { ...described, fits: described.fits && metadata.labels?.[labels.endpoint] === endpoint.metadata.name }
  } catch {
    // Damaged by hand: the certificate is obtained anew.
    return undefined
  }
}
