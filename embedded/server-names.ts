import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'

/** A link-local address carries a zone, and is of no use in a certificate; `0.0.0.0` and `::` are no addresses of a server. */
const isUsable = (address: string) => isIP(address) !== 0 && !/^fe80:/i.test(address) && !/^[0.:]+$/.test(address)

/**
 * Names in the certificate of a server that listens on `listen` and that others find as `publicHost`: every name that it is reached by on this machine, too;
 * on `0.0.0.0` or `::`, those of all interfaces.
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
