import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'

/**
 * Whether an address can be in a certificate: a link-local address has a zone, and `0.0.0.0` and `::` are not addresses of a
 * server.
 */
const isUsable = (address: string) => isIP(address) !== 0 && !/^fe80:/i.test(address) && !/^[0.:]+$/.test(address)

/**
 * Returns the names in the certificate of a server that listens on `listen` and is reached from other machines as `publicHost`:
 * all names of this machine, and on `0.0.0.0` or `::` the addresses of all interfaces.
 */
export function serverNames(listen: string, publicHost: string = listen): readonly string[] {
  const all = listen === '0.0.0.0' || listen === '::'
  const addresses = all
    ? Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address))
    : [listen]
  const usable = addresses.filter(isUsable)
  const host = hostname().toLowerCase()
  const hosts = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(host) ? [host] : []
  const publicly = isIP(publicHost) === 0 || isUsable(publicHost) ? [publicHost] : []
  return [...new Set(['localhost', '127.0.0.1', '::1', ...usable, ...hosts, ...publicly])]
}
