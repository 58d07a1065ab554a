import type { OwnerReference } from '../../../crds/kind.ts'
import { labels, SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { ownersOf } from '../owners.ts'

/** Labels of all objects of edges; the selector of the watches. */
export const OWNERSHIP = { 'app.kubernetes.io/name': 'mooring-edge', [labels.managedBy]: 'mooring' } as const

/** ClusterRole that lets edges read what they serve, and its binding. The chart makes both. */
export const EDGE_CLUSTER_ROLE = 'mooring-edge'

export const keyIn = (name: string) => ({ namespace: SYSTEM_NAMESPACE, name })

/** Selector of an endpoint's pods and of all its other objects. */
export const selectorOf = (endpoint: string): Record<string, string> => ({ ...OWNERSHIP, [labels.endpoint]: endpoint })

export interface EdgeMetadata {
  readonly name: string
  readonly namespace: string
  readonly labels: Record<string, string>
  readonly ownerReferences: OwnerReference[]
}

export function metadataOf(endpoint: Pick<TunnelEndpoint, 'metadata'>, name: string): EdgeMetadata {
  return { ...keyIn(name), labels: selectorOf(endpoint.metadata.name), ownerReferences: ownersOf(endpoint) }
}
