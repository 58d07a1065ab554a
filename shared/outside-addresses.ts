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
  /** Whether an IP address may be dialled; false for any other text. */
  readonly allows: (address: string) => boolean
  /** Whether a URL may have this host: true for a name, whose addresses are checked when it is dialled. */
  readonly allowsHost: (hostname: string) => boolean
}

/** Creates the guard. `privateAddresses` also allows private ranges; link-local and reserved ones stay refused. */
export function createAddressGuard({ privateAddresses }: { readonly privateAddresses: boolean }): AddressGuard {
  function allows(address: string): boolean {
    const plain = plainAddress(address)
    const family = isIP(plain)
    if (family === 0 || NEVER.allows(plain)) return false
    if (PRIVATE.allows(plain)) return privateAddresses
    return family === 4 || GLOBAL_IPV6.allows(plain)
  }

  function allowsHost(hostname: string): boolean {
    const address = hostname.replace(/^\[(.*)\]$/, '$1')
    if (isIP(address) !== 0) return allows(address)
    return privateAddresses || !isLocalName(hostname)
  }

  return { allows, allowsHost }
}

/** Whether a name is of this machine (RFC 6761, section 6.3). */
export const isLocalName = (hostname: string): boolean => /^(.*\.)?localhost\.?$/i.test(hostname)

export const ADDRESS_RULE = 'must not have a private, local or reserved address'
