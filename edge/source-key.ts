import { isIP } from 'node:net'

/** A household or a host has a whole /64 of IPv6 (RFC 6177): counting single addresses would count nobody. */
const IPV6_GROUPS = 4

/** What one source is counted under: an IPv4 address, or the network of an IPv6 one. */
export function sourceKey(address: string): string {
  if (isIP(address) !== 6) return address
  const [head = '', tail] = address.split('::')
  const groups = head.split(':')
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(':').length
  return [...groups, ...Array.from({ length: Math.max(0, missing) }, () => '0')].slice(0, IPV6_GROUPS).join(':')
}
