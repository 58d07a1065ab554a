import { ownerReferenceTo, type OwnerReference } from '../../crds/kind.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'

/** Owner references to an endpoint: its objects are deleted with it. */
export function ownersOf(endpoint: Pick<TunnelEndpoint, 'metadata'>): OwnerReference[] {
  return [ownerReferenceTo(TunnelEndpoint, endpoint)]
}
