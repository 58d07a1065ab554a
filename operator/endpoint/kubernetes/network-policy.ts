import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { EDGE_PORTS, edgeName } from '../../../shared/edge-objects.ts'
import { metadataOf, selectorOf } from './names.ts'

/** NetworkPolicy of edges: clients, visitors and metrics are open to any source; the mesh port only to the endpoint's other edges. */
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
