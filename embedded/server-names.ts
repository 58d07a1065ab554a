import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'

/** Every name that a server listening on `listen` is reached by on this machine; on `0.0.0.0` or `::`, those of all interfaces. */
export function serverNames(listen: string): readonly string[] {
  const all = listen === '0.0.0.0' || listen === '::'
  // A link-local address carries a zone and is no use in a certificate.
  const addresses = all
    ? Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address))
    : [listen]
  const usable = addresses.filter((address) => isIP(address) !== 0 && !/^fe80:/i.test(address))
  const host = hostname().toLowerCase()
  const hosts = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(host) ? [host] : []
  return [...new Set(['localhost', '127.0.0.1', '::1', ...usable, ...hosts])]
}
