import { isIP } from 'node:net'

/**
 * Groups of an IPv6 network of /64, which one household or host usually has (RFC 6177). Counting single addresses would limit nothing.
 */
const IPV6_GROUPS = 4

/** Returns the key that a source is counted under: an IPv4 address, or the /64 network of an IPv6 address. */
export function sourceKey(address: string): string {
  if (isIP(address) !== 6) return address
  const [head = '', tail] = address.split('::')
  const groups = head.split(':')
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(':').length
  return [...groups, ...Array.from({ length: Math.max(0, missing) }, () => '0')].slice(0, IPV6_GROUPS).join(':')
}
