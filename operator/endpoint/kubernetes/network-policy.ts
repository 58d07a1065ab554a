import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { EDGE_PORTS, edgeName } from '../../../shared/edge-objects.ts'
import { metadataOf, selectorOf } from './names.ts'

/** Clients, visitors and who reads metrics come from anywhere; to the port of the mesh come the other edges of the endpoint alone. */
export function networkPolicyOf(endpoint: TunnelEndpoint) {
  const { name } = endpoint.metadata
  const { mesh, ...open } = EDGE_PORTS
  const matchLabels = selectorOf(name)
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadataOf(endpoint, edgeName(name)),
    spec: {
      podSelector: { matchLabels },
      policyTypes: ['Ingress'],
      ingress: [
        { ports: Object.values(open).map((port) => ({ protocol: 'TCP', port })) },
        { from: [{ podSelector: { matchLabels } }], ports: [{ protocol: 'TCP', port: mesh }] },
      ],
    },
  }
}
