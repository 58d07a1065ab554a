import { BlockList, isIPv6 } from 'node:net'
import type { Node } from '../../kubernetes/kinds.ts'

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
