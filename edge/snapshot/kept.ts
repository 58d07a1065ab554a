import { EndpointSlice } from '../../crds/core.ts'
import type { Kind, Resource } from '../../crds/kind.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../../crds/tunnel-password.ts'

/** Kinds of resources that an edge needs. */
export const KEPT_KINDS: readonly Kind[] = [TunnelEndpoint, Tunnel, TunnelPassword, EndpointSlice]

/**
 * Returns the part of an object that an edge uses; undefined for objects of other endpoints. Changes of other parts are not written.
 * Pure.
 */
export function keptOf(object: Resource<Kind>, endpoint: string): object | undefined {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = object.metadata
  const metadata = { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp }
  if (object.kind === Tunnel.kind) {
    const { spec, status } = object as Tunnel
    if (status?.endpointRef?.name !== endpoint) return undefined
    const { hostname, endpointRef, certificate } = status
    return { metadata, spec, status: { hostname, endpointRef, certificate } }
  }
  if (object.kind === EndpointSlice.kind) {
    const { addressType, endpoints, ports } = object as EndpointSlice
    return { metadata: { ...metadata, labels: object.metadata.labels }, addressType, endpoints, ports }
  }
  // A password names its tunnel by its owner reference.
  const { ownerReferences } = object.metadata
  return { metadata: { ...metadata, ownerReferences }, spec: (object as TunnelPassword | TunnelEndpoint).spec }
}
