import { isIPv6 } from 'node:net'
import { childMetadata, childNames, selectorOf } from './names.ts'
import type { DesiredServer } from './desired-server.ts'

/** Clients that may connect to a server. */
export interface Callers {
  /** Namespaces of the tenants on the server. */
  readonly namespaces: readonly string[]
  /** Address ranges of the cluster's pods; while unknown, connections from outside the cluster are rejected. */
  readonly podNetworks: readonly string[]
}

/** NetworkPolicy of networking.k8s.io/v1 as it is sent: the client library's type renames `from`. */
export interface NetworkPolicyManifest {
  readonly apiVersion: 'networking.k8s.io/v1'
  readonly kind: 'NetworkPolicy'
  readonly metadata: ReturnType<typeof childMetadata>
  readonly spec: {
    readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> }
    readonly policyTypes: readonly ('Ingress' | 'Egress')[]
    readonly ingress: readonly { readonly from: readonly Peer[]; readonly ports: readonly { protocol: 'TCP'; port: number }[] }[]
    readonly egress: readonly never[]
  }
}

interface Selector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly { key: string; operator: 'In'; values: readonly string[] }[]
}
type Peer =
  | { readonly namespaceSelector: Selector; readonly podSelector?: Selector }
  | { readonly ipBlock: { readonly cidr: string; readonly except: readonly string[] } }

/** Label that the API server sets on every Namespace. */
const NAME = 'kubernetes.io/metadata.name'
/** Pods of the operator, the API server and the edges. */
const COMPONENTS: Selector = {
  matchExpressions: [{ key: 'app.kubernetes.io/name', operator: 'In', values: ['mooring', 'mooring-edge'] }],
}

/**
 * NetworkPolicy of a server. The server may open no connections. Its port is open to the operator, to pods in the namespaces of its
 * tenants, and to addresses outside the pod networks: callers from outside, however the Service is exposed. All other pods are rejected
 * (docs/isolation.md, "In a cluster: who reaches a server"). A server of Mooring's own is open only to Mooring's components.
 */
export function networkPolicyOf({ server, engine, settings }: DesiredServer, callers: Callers): NetworkPolicyManifest {
  const { name } = server.metadata
  const { operator } = settings
  const namespaceSelector = { matchLabels: { [NAME]: operator.namespace } }
  const from: Peer[] =
    server.spec.tenancy === 'internal'
      ? [{ namespaceSelector, podSelector: COMPONENTS }]
      : [
          { namespaceSelector, podSelector: { matchLabels: operator.labels } },
          ...tenants(callers.namespaces),
          ...outside(callers.podNetworks),
        ]
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: childMetadata(server, childNames(name).policy),
    spec: {
      podSelector: { matchLabels: selectorOf(name) },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from, ports: [{ protocol: 'TCP', port: engine.port }] }],
      egress: [],
    },
  }
}

function tenants(namespaces: readonly string[]): readonly Peer[] {
  if (namespaces.length === 0) return []
  const values = [...new Set(namespaces)].toSorted()
  return [{ namespaceSelector: { matchExpressions: [{ key: NAME, operator: 'In', values }] } }]
}

function outside(podNetworks: readonly string[]): readonly Peer[] {
  const six = podNetworks.filter(isSix)
  const four = podNetworks.filter((cidr) => !isSix(cidr))
  return [
    ...(four.length > 0 ? [{ ipBlock: { cidr: '0.0.0.0/0', except: four } }] : []),
    ...(six.length > 0 ? [{ ipBlock: { cidr: '::/0', except: six } }] : []),
  ]
}

const isSix = (cidr: string): boolean => isIPv6(cidr.split('/')[0] ?? '')
