import { isIP } from 'node:net'
import { addressList, plainAddress } from '../crds/formats/address-list.ts'

/**
 * Ranges that no receiver of webhooks may have: this host, link-local with the metadata services of clouds, documentation, multicast, reserved
 * ones, and IPv6 ranges that lead to IPv4 addresses (IANA, "IPv4 and IPv6 Special-Purpose Address Registries").
 */
const NEVER = addressList([
  ...['0.0.0.0/8', '169.254.0.0/16', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '198.18.0.0/15', '198.51.100.0/24'],
  ...['203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  // Metadata services in ranges that are private otherwise.
  ...['100.100.100.200', 'fd00:ec2::254', 'fd20:ce::254'],
  // Teredo and other protocols, documentation, 6to4.
  ...['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
])

/** Private ranges: loopback (RFC 1122, RFC 4291), private (RFC 1918, RFC 4193) and shared (RFC 6598) addresses. */
const PRIVATE = addressList(['10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '::1', 'fc00::/7'])

/** IPv6 addresses that are global at all. NAT64 (64:ff9b::/96) and IPv4-compatible addresses are outside. */
const GLOBAL_IPV6 = addressList(['2000::/3'])

/** Decides which addresses the receivers of webhooks may have. */
export interface AddressGuard {
  /** Whether a port of an IP address may be dialled; false for any other text. */
  readonly allows: (address: string, port: number) => boolean
  /** Whether a webhook may have this URL: true for a name, whose addresses are checked when it is dialled. */
  readonly allowsUrl: (url: URL) => boolean
}

/** Listeners of Mooring itself. A webhook must not reach them: each event of a loop would cause the next one. */
export interface OwnListeners {
  /** Whether an address, in plain form, and port are a listener of Mooring. */
  readonly hasAddress: (address: string, port: number) => boolean
  /** Returns the domains of the tunnels. */
  readonly domains: () => readonly string[]
}

export interface AddressGuardDeps {
  /** Whether private ranges are allowed; link-local and reserved ones stay refused. */
  readonly privateAddresses: boolean
  /** Private networks that are allowed nevertheless. */
  readonly allowedNetworks?: readonly string[]
  readonly own?: Partial<OwnListeners>
}

/** Creates the guard. */
export function createAddressGuard({ privateAddresses, allowedNetworks = [], own = {} }: AddressGuardDeps): AddressGuard {
  const networks = allowedNetworks.length > 0 ? addressList(allowedNetworks) : undefined
  const isPrivateAllowed = (address: string) => privateAddresses || networks?.allows(address) === true

  function allows(address: string, port: number): boolean {
    const plain = plainAddress(address)
    const family = isIP(plain)
    if (family === 0 || NEVER.allows(plain) || own.hasAddress?.(plain, port) === true) return false
    if (PRIVATE.allows(plain)) return isPrivateAllowed(plain)
    return family === 4 || GLOBAL_IPV6.allows(plain)
  }

  /** Whether a name is the host of a tunnel: 16 hexadecimal digits below a domain. */
  function isTunnel(name: string): boolean {
    const [, domain] = /^[0-9a-f]{16}\.(.+)$/.exec(name) ?? []
    return domain !== undefined && own.domains?.().includes(domain) === true
  }

  function allowsUrl({ hostname, port, protocol }: URL): boolean {
    const at = portOf({ port, protocol })
    const address = hostname.replace(/^\[(.*)\]$/, '$1')
    if (isIP(address) !== 0) return allows(address, at)
    if (isTunnel(hostname.toLowerCase().replace(/\.$/, ''))) return false
    return !isLocalName(hostname) || LOOPBACK.every((each) => allows(each, at))
  }

  return { allows, allowsUrl }
}

/** Addresses of names of this machine. */
const LOOPBACK = ['127.0.0.1', '::1']

/** Returns the port that a URL leads to. */
export const portOf = ({ port, protocol }: Pick<URL, 'port' | 'protocol'>): number =>
  port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)

/** Whether a name is of this machine (RFC 6761, section 6.3). */
export const isLocalName = (hostname: string): boolean => /^(.*\.)?localhost\.?$/i.test(hostname)

export const ADDRESS_RULE = 'must not have a private, local or reserved address, or one of Mooring itself'
