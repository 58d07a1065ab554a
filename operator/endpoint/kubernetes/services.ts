import type { V1Service, V1ServicePort } from '@kubernetes/client-node'
import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { EDGE_PORTS, edgeName, meshName } from '../../../shared/edge-objects.ts'
import type { Plain, Service } from '../../kubernetes/kinds.ts'
import { metadataOf, selectorOf } from './kinds.ts'
import type { EdgePodSettings } from './settings.ts'

/** Kubernetes' own default of `--service-node-port-range`. */
const NODE_PORTS = { first: 30_000, last: 32_767 }

type Target = 'ssh' | 'http' | 'https'

/**
 * Service that clients and visitors connect to: the endpoint's ports and the public ports of HTTP. A port in the range of node ports is
 * also the node port. An edge sees its visitor's own address, which address lists compare.
 */
export function serviceOf(endpoint: TunnelEndpoint, { service }: EdgePodSettings): Plain<V1Service> {
  const { name } = endpoint.metadata
  const { type, externalTrafficPolicy, annotations, loadBalancerClass, loadBalancerSourceRanges } = service
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...metadataOf(endpoint, edgeName(name)), ...(Object.keys(annotations).length > 0 && { annotations }) },
    spec: {
      type,
      selector: selectorOf(name),
      ports: portsOf(endpoint.spec, type),
      ...(type !== 'ClusterIP' && { externalTrafficPolicy }),
      ...(type === 'LoadBalancer' && {
        ...(loadBalancerClass !== '' && { loadBalancerClass }),
        ...(loadBalancerSourceRanges.length > 0 && { loadBalancerSourceRanges: [...loadBalancerSourceRanges] }),
      }),
    },
  }
}

/** Reason why clients and visitors outside the cluster cannot reach the Service yet; undefined when they can, or are not meant to. */
export function addressPending({ metadata, spec, status }: Service): string | undefined {
  if (spec.type !== 'LoadBalancer' || status?.loadBalancer.ingress.some(({ ip, hostname }) => ip ?? hostname)) return undefined
  return `the load balancer of the Service ${metadata.name} has no address yet`
}

function portsOf({ ports, publicHttpPort, publicHttpsPort }: TunnelEndpoint['spec'], type: string): Plain<V1ServicePort>[] {
  const desired: readonly (readonly [string, number, Target])[] = [
    ['ssh', ports.ssh, 'ssh'],
    ['http', ports.http, 'http'],
    ['https', ports.https, 'https'],
    ['public-http', publicHttpPort, 'http'],
    ['public-https', publicHttpsPort, 'https'],
  ]
  const taken = new Set<number>()
  return desired.flatMap(([name, port, target]) => {
    if (taken.has(port)) return []
    taken.add(port)
    const nodePort = type !== 'ClusterIP' && port >= NODE_PORTS.first && port <= NODE_PORTS.last ? { nodePort: port } : {}
    return [{ name, port, targetPort: EDGE_PORTS[target], protocol: 'TCP', ...nodePort }]
  })
}

/** Headless Service by whose EndpointSlices edges find each other, draining edges included. */
export function meshServiceOf(endpoint: TunnelEndpoint): Plain<V1Service> {
  const { name } = endpoint.metadata
  const targetPort = EDGE_PORTS.mesh
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadataOf(endpoint, meshName(name)),
    spec: {
      clusterIP: 'None',
      publishNotReadyAddresses: false,
      selector: selectorOf(name),
      ports: [{ name: 'mesh', port: EDGE_PORTS.mesh, targetPort, protocol: 'TCP' }],
    },
  }
}

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
