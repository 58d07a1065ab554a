import { isIPv6, BlockList } from 'node:net'
import { childMetadata, childNames, selectorOf } from './manifests.ts'
import type { ServerAccess } from '../access.ts'
import { backupEgress, type EgressRule } from './backup/egress.ts'
import type { DesiredServer } from './desired-server.ts'
import type { DesiredExporter } from './exporter/settings.ts'
import { labels } from '../../../crds/names.ts'
import { includes, rangesOf, textOf } from '../../../crds/formats/address-range.ts'
import { admittedSources } from '../../engines/access.ts'
import type { Node } from '../../kubernetes/kinds.ts'

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
    readonly egress: readonly EgressRule[]
  }
}

interface Selector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly { key: string; operator: 'In'; values: readonly string[] }[]
}
type Peer =
  | { readonly namespaceSelector: Selector; readonly podSelector?: Selector }
  | { readonly ipBlock: { readonly cidr: string; readonly except?: readonly string[] } }

/** Label that the API server sets on every Namespace. */
const NAME = 'kubernetes.io/metadata.name'
/** Value of the label `app.kubernetes.io/name` of edges (operator/endpoint/kubernetes/kinds.ts). */
const EDGE_NAME = 'mooring-edge'
/** Pods of the operator, the API server and the edges. */
const COMPONENTS: Selector = {
  matchExpressions: [{ key: 'app.kubernetes.io/name', operator: 'In', values: ['mooring', EDGE_NAME] }],
}

/**
 * NetworkPolicy of a server. The server may open no connections but those of its backups. Its port is open to the operator, to pods in the namespaces of its
 * tenants, and to addresses outside the pod networks: callers from outside, however the Service is exposed. All other pods are rejected
 * (docs/isolation.md, "In a cluster: who reaches a server"). A server of Mooring's own is open only to Mooring's components. A restricted server
 * is open to all pods of its organization, to its sources outside the pod networks, and with an SSH tunnel to the edges of its endpoint. The port
 * of its exporter is open to Prometheus, and the port for the administrator to the operator alone.
 */
export function networkPolicyOf(
  { server, engine, adminPort, settings, access, backups, exporter }: DesiredServer,
  callers: Callers,
): NetworkPolicyManifest {
  const { name } = server.metadata
  const { operator } = settings
  const namespaceSelector = { matchLabels: { [NAME]: operator.namespace } }
  const ofOperator: Peer = { namespaceSelector, podSelector: { matchLabels: operator.labels } }
  const from: Peer[] =
    server.spec.tenancy === 'internal'
      ? [{ namespaceSelector, podSelector: COMPONENTS }]
      : [
          ofOperator,
          ...(access
            ? [
                ofOrganization(access.organization),
                ...edgesOf(access, namespaceSelector),
                ...sources(access, callers.podNetworks),
              ]
            : [...tenants(callers.namespaces), ...outside(callers.podNetworks)]),
        ]
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: childMetadata(server, childNames(name).policy),
    spec: {
      podSelector: { matchLabels: selectorOf(name) },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        { from, ports: [{ protocol: 'TCP', port: engine.port }] },
        ...(adminPort === undefined ? [] : [{ from: [ofOperator], ports: [{ protocol: 'TCP' as const, port: adminPort }] }]),
        ...(exporter ? [scrapeRule(exporter)] : []),
      ],
      egress: backups ? backupEgress(backups) : [],
    },
  }
}

/** Rule for Prometheus, which may connect to the port of the exporter alone. */
function scrapeRule({ settings: { prometheus }, program }: DesiredExporter): NetworkPolicyManifest['spec']['ingress'][number] {
  const namespaceSelector = { matchLabels: { [NAME]: prometheus.namespace } }
  const podSelector = { matchLabels: prometheus.podLabels }
  return { from: [{ namespaceSelector, podSelector }], ports: [{ protocol: 'TCP', port: program.port }] }
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

const ofOrganization = (organization: string): Peer => ({
  namespaceSelector: { matchLabels: { [labels.organization]: organization } },
})

/** Edges of the endpoint of an SSH tunnel. */
function edgesOf({ edges }: ServerAccess, namespaceSelector: Selector): readonly Peer[] {
  if (edges === undefined) return []
  return [{ namespaceSelector, podSelector: { matchLabels: { 'app.kubernetes.io/name': EDGE_NAME, [labels.endpoint]: edges } } }]
}

/**
 * Blocks of the sources of a restricted server, without the pods in them: a block must not admit pods of other organizations. Sources of an
 * address family whose pod networks are unknown are rejected.
 */
function sources(access: ServerAccess, podNetworks: readonly string[]): readonly Peer[] {
  const admitted = admittedSources(access, podNetworks).outside
  if (admitted === undefined) return outside(podNetworks)
  const pods = rangesOf(podNetworks)
  return rangesOf(admitted).flatMap((range) => {
    const isUnknown = !pods.some(({ family }) => family === range.family)
    if (isUnknown || pods.some((network) => includes(network, range))) return []
    const except = pods.filter((network) => includes(range, network)).map(textOf)
    return [{ ipBlock: { cidr: textOf(range), ...(except.length > 0 && { except }) } }]
  })
}

const isSix = (cidr: string): boolean => isIPv6(cidr.split('/')[0] ?? '')

/** Facts from which the pod networks are derived. */
export interface NetworkFacts {
  /** Configured ranges; they override all others. */
  readonly configured: readonly string[]
  readonly nodes: readonly Node[]
  /** Addresses of known pods. */
  readonly podAddresses: readonly string[]
}

/** Prefix lengths of the range assumed around a pod's address: pods of one cluster are seldom further apart. */
const GUESS = { four: 16, six: 48 } as const

/**
 * Address ranges that hold the cluster's pods, sorted. Kubernetes has no API for the ranges of a network plugin: nodes have ranges only if
 * the controller manager assigns them. For a known pod outside these ranges, the range around its address is assumed.
 */
export function podNetworks({ configured, nodes, podAddresses }: NetworkFacts): readonly string[] {
  if (configured.length > 0) return [...new Set(configured)].toSorted()
  const networks = new Set(nodes.flatMap(({ spec }) => spec.podCIDRs))
  for (const address of podAddresses) {
    if (!contains(networks, address)) networks.add(around(address))
  }
  return [...networks].toSorted()
}

function contains(networks: Iterable<string>, address: string): boolean {
  const list = new BlockList()
  for (const cidr of networks) {
    const [net = '', prefix = ''] = cidr.split('/')
    list.addSubnet(net, Number(prefix), familyOf(net))
  }
  return list.check(address, familyOf(address))
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4')

function around(address: string): string {
  if (!isIPv6(address)) return `${address.split('.').slice(0, 2).join('.')}.0.0/${GUESS.four}`
  // URL normalizes an address: one form for each, without dotted decimals.
  const [left = '', right = ''] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const [head, tail] = [left, right].map((part) => part.split(':').filter((group) => group !== ''))
  const groups = [...(head ?? []), ...Array<string>(8 - (head?.length ?? 0) - (tail?.length ?? 0)).fill('0'), ...(tail ?? [])]
  return `${groups.slice(0, 3).join(':')}::/${GUESS.six}`
}
