import { BlockList, isIPv6 } from 'node:net'
import type { Node } from '../../kubernetes/kinds.ts'

/** What tells which addresses are pods'. */
export interface NetworkFacts {
  /** As it was set; then nothing else counts. */
  readonly configured: readonly string[]
  readonly nodes: readonly Node[]
  /** Addresses of some pods. */
  readonly podAddresses: readonly string[]
}

/** A cluster's pods seldom lie further apart. */
const GUESS = { four: 16, six: 48 } as const

/**
 * Address ranges that hold the cluster's pods, sorted. Kubernetes has no place where a network plugin would say them: nodes have ranges
 * where the controller manager gives them out, and a known pod that lies in none of these stands for the range around it.
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
  // URLs have one form for each address, without dotted decimals.
  const [left = '', right = ''] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const [head, tail] = [left, right].map((part) => part.split(':').filter((group) => group !== ''))
  const groups = [...(head ?? []), ...Array<string>(8 - (head?.length ?? 0) - (tail?.length ?? 0)).fill('0'), ...(tail ?? [])]
  return `${groups.slice(0, 3).join(':')}::/${GUESS.six}`
}
