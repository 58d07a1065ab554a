import { BlockList, isIP, isIPv6, SocketAddress } from 'node:net'
import { networkAround } from './address-range.ts'

/** Firewall list of addresses and CIDR ranges. An empty list allows every address. */
export interface AddressList {
  allows(address: string): boolean
}

/** IPv4-mapped IPv6 address in its usual notation (RFC 4291, section 2.5.5.2). Dual-stack sockets report IPv4 clients so. */
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i
/** Substring of every notation of an IPv4-mapped address; a cheap test before the full parse. */
const MAYBE_MAPPED = /:ffff:/i

/** Returns the address in the form of lists and logs: without a zone, and an IPv4-mapped address as IPv4. */
export function plainAddress(address: string): string {
  const [bare = ''] = address.split('%')
  return MAPPED.exec(bare)?.[1] ?? (MAYBE_MAPPED.test(bare) ? mappedOf(bare) : undefined) ?? bare
}

function mappedOf(address: string): string | undefined {
  return isIPv6(address) ? MAPPED.exec(new SocketAddress({ address, family: 'ipv6' }).address)?.[1] : undefined
}

/**
 * Makes a firewall list. An entry matches addresses of its own family only. An invalid entry matches no address, and a list of invalid
 * entries rejects every address. A range with address bits after its prefix, such as `1.2.3.4/0`, is invalid.
 */
export function addressList(entries: readonly string[]): AddressList {
  if (entries.length === 0) return { allows: () => true }
  // One BlockList per family: in a common one, `::/0` also matches IPv4 addresses in their IPv4-mapped form.
  const [ipv4, ipv6] = [new BlockList(), new BlockList()]
  for (const entry of entries) add(entry.includes(':') ? ipv6 : ipv4, entry)
  return {
    allows(address) {
      const plain = plainAddress(address)
      const family = isIP(plain)
      return family === 4 ? ipv4.check(plain, 'ipv4') : family === 6 && ipv6.check(plain, 'ipv6')
    },
  }
}

const PREFIX = 'a prefix of 0 to 32 bits (IPv6: 0 to 128)'
const FORM = `must be an IP address or a range such as 203.0.113.0/24, with ${PREFIX}`

/** Rule of one entry; `ofList` and `cel` are the rule of a whole list in CRDs. */
export const ADDRESS_RULE = {
  message: FORM,
  ofList: `must contain only IP addresses and ranges such as 203.0.113.0/24, with ${PREFIX} and no address bits after it (not 203.0.113.7/24)`,
  cel: celOf('item'),
  holds: (text: string): boolean => isAddressOrRange(text) && networkAround(text) === undefined,
  messageOf: wrongAddress,
} as const

/** Form of an entry in stored objects: those of earlier versions may break the rest of {@link ADDRESS_RULE}, and then match no address. */
export const ADDRESS_FORM = { message: FORM, holds: isAddressOrRange } as const

/** Returns {@link ADDRESS_RULE} for an expression of CEL. */
export function celOf(expression: string): string {
  return `isIP(${expression}) || isCIDR(${expression}) && cidr(${expression}) == cidr(${expression}).masked()`
}

/** Returns the sentence about an entry that breaks the rule, with the network that was probably meant. */
function wrongAddress(text: string): string {
  const network = isAddressOrRange(text) ? networkAround(text) : undefined
  if (network === undefined) return FORM
  const [address = ''] = text.split('/')
  const [bits, whole] = network.endsWith('/0')
    ? [address, `${network} for all addresses`]
    : [network, `${address} for the one address`]
  return `has address bits after its prefix: write ${bits}, or ${whole}`
}

/** Whether a text is an IP address or range for Kubernetes' CEL functions `isIP` and `isCIDR`: zones and IPv4-mapped addresses are invalid. */
function isAddressOrRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0 || address.includes('%') || mappedOf(address) !== undefined) return false
  if (bits === undefined) return true
  try {
    new BlockList().addSubnet(address, Number(bits), family === 4 ? 'ipv4' : 'ipv6')
    return /^(0|[1-9]\d*)$/.test(bits)
  } catch {
    return false
  }
}

const BITS = /^\d+$/

function add(list: BlockList, entry: string): void {
  const [address = '', bits] = entry.split('/')
  const family = isIP(address)
  if (family === 0 || (bits !== undefined && !BITS.test(bits)) || networkAround(entry) !== undefined) return
  try {
    list.addSubnet(address, bits === undefined ? (family === 4 ? 32 : 128) : Number(bits), family === 4 ? 'ipv4' : 'ipv6')
  } catch {
    // The prefix is longer than an address of the family: the entry matches no address.
  }
}

/**
 * Whether an address or name reaches only this machine, so that no TLS is needed (RFC 1122, section 3.2.1.3; RFC 4291, section 2.5.3;
 * RFC 6761, section 6.3).
 */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
