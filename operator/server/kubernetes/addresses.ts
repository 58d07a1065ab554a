import type { Node, Pod, Service } from '../../kubernetes/kinds.ts'
import { childNames } from './manifests.ts'
import type { Exposure, DesiredServer } from './desired-server.ts'

export interface Address {
  readonly host: string
  readonly port: number
}

/** Observed objects that an address depends on. */
export interface Surroundings {
  readonly service: Service
  readonly pod: Pod | undefined
  readonly nodes: readonly Node[]
}

/** Maximum number of nodes whose addresses are in a certificate: a server that moves among them needs no new one. */
const MOST_NODES = 20

/** Address of a server for callers, or a sentence that says what is missing. */
export function callersAddress(desired: DesiredServer, surroundings: Surroundings): Address | string {
  const host = desired.host ?? ownHost(desired, surroundings)
  if (host === undefined) return WAITS[desired.exposure]
  if (desired.exposure !== 'NodePort') return { host, port: desired.engine.port }
  const port = surroundings.service.spec.ports[0]?.nodePort
  return port === undefined ? 'its Service has no port on the nodes yet' : { host, port }
}

const WAITS = {
  ClusterIP: 'its Service has no name yet',
  LoadBalancer: 'its load balancer has no address yet',
  NodePort: 'no node is chosen for it yet',
} as const satisfies Record<Exposure, string>

function ownHost(desired: DesiredServer, surroundings: Surroundings): string | undefined {
  switch (desired.exposure) {
    case 'ClusterIP':
      return desired.access?.isPrivate ? internalHost(desired) : serviceName(desired.server.metadata)
    case 'LoadBalancer':
      return ingressHosts(surroundings.service)[0]
    case 'NodePort':
      return nodeAddress(surroundings)
  }
}

/** What a client dials behind `kubectl port-forward` or an SSH tunnel. The exporter in the pod dials the address, too. */
const LOOPBACK = ['localhost', '127.0.0.1']

/** Names and addresses in a server's certificate: all by which it is dialled. */
export function certificateNames(desired: DesiredServer, { service, pod, nodes }: Surroundings): readonly string[] {
  const { server, exposure, host, nodeSelector } = desired
  const { name, namespace = '' } = server.metadata
  const names = [name, `${name}.${namespace}`, serviceName(server.metadata), internalHost(desired), ...LOOPBACK]
  const address = service.spec.clusterIP
  if (address !== undefined && address !== 'None') names.push(address)
  if (host !== undefined) names.push(host)
  if (exposure === 'LoadBalancer') names.push(...ingressHosts(service))
  if (exposure === 'NodePort') {
    const possible = nodes.filter((node) => matches(node, nodeSelector)).slice(0, MOST_NODES)
    const chosen = nodeAddress({ service, pod, nodes })
    names.push(...possible.flatMap(addressesOf), ...(chosen === undefined ? [] : [chosen]))
  }
  return [...new Set(names)].toSorted()
}

/** DNS name of a Service, valid in all namespaces of the cluster. */
export const serviceName = ({ name, namespace = '' }: { readonly name: string; readonly namespace?: string }): string =>
  `${childNames(name).service}.${namespace}.svc`

/** The same with the cluster's domain, for pods of the cluster: it needs no search domain. */
export const internalHost = ({ server, settings }: Pick<DesiredServer, 'server' | 'settings'>): string =>
  `${serviceName(server.metadata)}.${settings.clusterDomain}`

function ingressHosts({ status }: Service): readonly string[] {
  return (status?.loadBalancer.ingress ?? []).flatMap(({ hostname, ip }) => hostname ?? ip ?? [])
}

/** Address of the server's node: no other node forwards traffic to it. */
function nodeAddress({ pod, nodes }: Surroundings): string | undefined {
  const node = nodes.find(({ metadata }) => metadata.name === pod?.spec.nodeName)
  return (node && addressesOf(node)[0]) ?? pod?.status?.hostIP
}

/** Addresses of a node, external ones first. */
function addressesOf({ status }: Node): readonly string[] {
  const of = (desired: string) => (status?.addresses ?? []).filter(({ type }) => type === desired).map(({ address }) => address)
  return [...of('ExternalIP'), ...of('InternalIP')]
}

function matches({ metadata }: Node, selector: Readonly<Record<string, string>>): boolean {
  return Object.entries(selector).every(([label, value]) => metadata.labels?.[label] === value)
}
