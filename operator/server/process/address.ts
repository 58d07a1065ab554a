import { isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'

const isWildcard = (address: string): boolean => address === '0.0.0.0' || address === '::'

/** Host at which Mooring itself dials a server that listens on `listen`. */
export function adminHost(listen: string): string {
  if (!isWildcard(listen)) return listen
  return isIPv6(listen) ? '::1' : '127.0.0.1'
}

/** Host for callers: for a wildcard, the machine's first address that other machines can reach. */
export function callersHost(listen: string): string {
  if (!isWildcard(listen)) return listen
  const family = isIPv6(listen) ? 'IPv6' : 'IPv4'
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  const outside = addresses.find((at) => !at.internal && at.family === family && !at.address.startsWith('fe80:'))
  return outside?.address ?? adminHost(listen)
}
