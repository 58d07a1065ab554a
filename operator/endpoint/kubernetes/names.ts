import type { OwnerReference } from '../../../crds/kind.ts'
import { labels, SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { MESH_SUFFIX, type TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { ownersOf } from '../owners.ts'

/** On all that edges consist of; what is watched. */
export const OWNERSHIP = { 'app.kubernetes.io/name': 'mooring-edge', [labels.managedBy]: 'mooring' } as const

/** ClusterRole with which edges read what they serve, and its binding, which the chart makes. */
export const EDGE_CLUSTER_ROLE = 'mooring-edge'

/** What an edge's container listens on, whatever its Service's ports are. */
export const EDGE_PORTS = { ssh: 22_222, http: 28_080, https: 28_443, mesh: 28_444, metrics: 9_464 } as const

/** Name of an endpoint's Deployment, Service, ServiceAccount, Role, and whatever else there is one of. */
export const edgeName = (endpoint: string): string => `edge-${endpoint}`
/** Its Service without an address: by it the edges find each other. */
export const meshName = (endpoint: string): string => `${edgeName(endpoint)}${MESH_SUFFIX}`
/** Its Secret with the certificate that they show each other. */
export const meshSecretName = (endpoint: string): string => `endpoint-${endpoint}-mesh`

export const keyIn = (name: string) => ({ namespace: SYSTEM_NAMESPACE, name })

/** What selects an endpoint's pods, and everything else of it. */
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
