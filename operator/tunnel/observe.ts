import { Secret } from '../../crds/core.ts'
import { annotations } from '../../crds/names.ts'
import type { Region } from '../../crds/region.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import { keyPairIn } from '../secret-data.ts'
import { describe, type Issuers } from './certificate-issuer.ts'
import type { HeldCertificate, World } from './plan.ts'
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

/** Reads all that a decision about a tunnel needs. */
export async function observe(deps: ObserveDeps, tunnel: Tunnel): Promise<World> {
  const { tunnels, endpoints, regions } = deps
  const { endpointRef, hostname } = tunnel.status ?? {}
  const region = regions.list().find(({ spec }) => spec.regionId === tunnel.spec.regionId)
  const assigned = endpointRef && endpoints.get({ name: endpointRef.name })
  const tunnelsOn = (name: string) => tunnels.byIndex('endpoint', name).length
  return {
    tunnel,
    now: deps.now().getTime(),
    region: region !== undefined,
    assigned,
    candidates: region ? candidatesOf(endpoints.list(), region.spec.id, tunnelsOn) : [],
    certificate: assigned && hostname !== undefined ? await certificateOf(deps, assigned, hostname) : undefined,
  }
}

async function certificateOf(
  { store, issuers, now }: ObserveDeps,
  endpoint: TunnelEndpoint,
  hostname: string,
): Promise<HeldCertificate | undefined> {
  const issuer = issuers[endpoint.spec.issuer]
  const secret = issuer && (await store.get(Secret, certificateKey(endpoint, hostname)))
  if (!secret) return undefined
  const held = {
    ...keyPairIn(secret),
    obtainedAt: secret.metadata.annotations?.[annotations.obtainedAt],
  }
  try {
    return describe(held, { issuer, name: certificateName(endpoint, hostname), now: now() })
  } catch {
    // Somebody's hand: it is obtained anew.
    return undefined
  }
}
