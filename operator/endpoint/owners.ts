import { ownerReferenceTo, type OwnerReference } from '../../crds/kind.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'

/** What is made for an endpoint names it as its owner, and goes with it. */
export function ownersOf(endpoint: Pick<TunnelEndpoint, 'metadata'>): OwnerReference[] {
  return [ownerReferenceTo(TunnelEndpoint, endpoint)]
}
