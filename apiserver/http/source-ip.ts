import { isIPv6 } from 'node:net'

/** Normalizes a peer address: `::ffff:192.0.2.1`, the form of a dual-stack socket, becomes `192.0.2.1`. */
export function sourceIpOf(address: string | undefined): string {
  if (address === undefined) return 'unknown'
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address
}

/** Returns the rate limit key of an address: the IPv4 address, or the /64 of an IPv6 address, which one host has to itself. */
export function sourceKeyOf(ip: string): string {
  if (!isIPv6(ip)) return ip
  const [head = '', tail] = ip.split('::')
  const groups = head === '' ? [] : head.split(':')
  const rest = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - groups.length - rest.length
  return [...groups, ...Array.from({ length: zeros }, () => '0'), ...rest].slice(0, 4).join(':')
}
