import { Secret } from '../../crds/core.ts'
import { annotations, labels } from '../../crds/names.ts'
import type { Region } from '../../crds/region.ts'
import { HostnameKeptReason, type Tunnel, type TunnelCertificate } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Cache } from '../../store/cache.ts'
import { notReady } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'
import type { Quota } from '../quota/quota.ts'
import { keyPairIn } from '../secret-data.ts'
import { describe, type Issuers, renewalTime, signsFor } from './certificate-issuer.ts'
import { markedHostname } from './hostname-mark.ts'
import { hasHostname } from './indexes.ts'
import type { HeldCertificate, KeptHostname, Observed } from './plan.ts'
import { candidatesOf, certificateKey, certificateName } from './resources.ts'

export interface ObserveDeps {
  readonly store: Store
  /** With the indexes of indexes.ts. */
  readonly tunnels: Cache<typeof Tunnel>
  readonly endpoints: Cache<typeof TunnelEndpoint>
  readonly regions: Cache<typeof Region>
  readonly issuers: Issuers
  readonly now: () => Date
}

export interface AdmitDeps {
  readonly quota: Pick<Quota<Tunnel>, 'admit'>
}

/** Reads all that a decision about a tunnel needs; writes nothing, but lets one that has no hostname in, if there is room. */
export async function observe(deps: ObserveDeps & AdmitDeps, tunnel: Tunnel): Promise<Observed> {
  const { tunnels, endpoints, regions } = deps
  const { endpointRef, hostname } = tunnel.status ?? {}
  const region = regions.list().find(({ spec }) => spec.regionId === tunnel.spec.regionId)
  const assigned = endpointRef && endpoints.get({ name: endpointRef.name })
  const tunnelsOn = (name: string) => tunnels.countByIndex('endpoint', name)
  const isSigned = (endpoint: TunnelEndpoint) => signsFor(deps.issuers, endpoint)
  return {
    tunnel,
    now: deps.now().getTime(),
    full: hasHostname(tunnel) || tunnel.metadata.deletionTimestamp !== undefined ? undefined : deps.quota.admit(tunnel),
    region: region !== undefined,
    assigned,
    isSigned: assigned !== undefined && isSigned(assigned),
    candidates: region ? candidatesOf(endpoints.list().filter(isSigned), region.spec.id, tunnelsOn) : [],
    certificate: assigned && (await certificateOf(deps, tunnel, assigned)),
    kept: hostname === undefined ? keptHostname(deps, tunnel) : undefined,
  }
}

function keptHostname({ issuers, tunnels }: ObserveDeps, { metadata }: Tunnel): KeptHostname | undefined {
  if (metadata.annotations?.[annotations.hostname] === undefined) return undefined
  const hostname = markedHostname(issuers.local.mac, metadata)
  if (hostname === undefined) {
    const message = `its annotation ${annotations.hostname} was not made for it by this installation: it gets another hostname`
    return { refused: notReady(HostnameKeptReason.InvalidMark, message) }
  }
  if (tunnels.countByIndex('hostname', hostname) === 0) return { hostname }
  return { refused: notReady(HostnameKeptReason.HostnameTaken, `another tunnel has the hostname ${hostname}: it gets another`) }
}

/**
 * The certificate as the tunnel's status has it since its Secret was read: to read ten thousand anew takes a start of the operator a minute.
 * Undefined when it is not what is to be had now, or it is due: then the Secret must be read. Whether that is still there is for the sweep.
 */
function statedCertificate(
  { issuers, now }: Pick<ObserveDeps, 'issuers' | 'now'>,
  { status }: Tunnel,
  endpoint: TunnelEndpoint,
): HeldCertificate | undefined {
  const { hostname, certificate: said } = status ?? {}
  const issuer = issuers[endpoint.spec.issuer]?.name
  if (hostname === undefined || issuer === undefined || said?.status !== 'valid') return undefined
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
  // That of all tunnels of an endpoint is owned by it, and went with an earlier one of its name.
  const isGone = spec.certificates === 'wildcard' && said.obtainedAt < Date.parse(metadata.creationTimestamp)
  const renewAt = renewalTime(said, about.hostname)
  return renewAt > about.now && !isGone ? { ...said, renewAt, fits: true } : undefined
}

async function certificateOf(deps: ObserveDeps, tunnel: Tunnel, endpoint: TunnelEndpoint): Promise<HeldCertificate | undefined> {
  const { hostname } = tunnel.status ?? {}
  if (hostname === undefined || !signsFor(deps.issuers, endpoint)) return undefined
  const stated = statedCertificate(deps, tunnel, endpoint)
  if (stated) return stated
  const secret = await deps.store.get(Secret, certificateKey(endpoint, hostname))
  return secret && certificateIn(secret, deps, { endpoint, hostname })
}

/** What a Secret holds for a tunnel; undefined when that is no certificate, or nobody signs for its endpoint. */
export function certificateIn(
  secret: Secret,
  { issuers, now }: Pick<ObserveDeps, 'issuers' | 'now'>,
  { endpoint, hostname }: { readonly endpoint: TunnelEndpoint; readonly hostname: string },
): HeldCertificate | undefined {
  const issuer = issuers[endpoint.spec.issuer]
  if (!issuer) return undefined
  const { metadata } = secret
  const held = { ...keyPairIn(secret), obtainedAt: metadata.annotations?.[annotations.obtainedAt] }
  try {
    const described = describe(held, { issuer, hostname, name: certificateName(endpoint, hostname), now: now() })
    // Edges leave others' alone.
    return { ...described, fits: described.fits && metadata.labels?.[labels.endpoint] === endpoint.metadata.name }
  } catch {
    // Somebody's hand: it is obtained anew.
    return undefined
  }
}
