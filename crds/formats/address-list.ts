import { BlockList, isIP, isIPv6, SocketAddress } from 'node:net'

/** Whether an address is in a firewall list. An empty list lets everyone in. */
export interface AddressList {
  allows(address: string): boolean
}

/** What an IPv4 client of a dual-stack socket looks like (RFC 4291, section 2.5.5.2), as it is usually written. */
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i
/** What no other way to write one does without. */
const MAYBE_MAPPED = /:ffff:/i

/** The address as lists and logs have it: an IPv4-mapped one is IPv4, a zone is left out. */
export function plainAddress(address: string): string {
  const [bare = ''] = address.split('%')
  return MAPPED.exec(bare)?.[1] ?? (MAYBE_MAPPED.test(bare) ? mappedOf(bare) : undefined) ?? bare
}

function mappedOf(address: string): string | undefined {
  return isIPv6(address) ? MAPPED.exec(new SocketAddress({ address, family: 'ipv6' }).address)?.[1] : undefined
}

/**
 * Of addresses and CIDR ranges; an entry is about addresses of its own family alone. One that cannot be read lets nobody in, and does not
 * open the list to everyone.
 */
export function addressList(entries: readonly string[]): AddressList {
  if (entries.length === 0) return { allows: () => true }
  // A list of its own for each: in a common one `::/0` holds IPv4 too, as the IPv6 addresses that it can be written as.
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

/** The rule of an entry, and of a list of them in CRDs. */
export const ADDRESS_RULE = {
  message: 'must be an IP address or a range such as 203.0.113.0/24',
  ofList: 'must hold IP addresses and ranges such as 203.0.113.0/24 alone',
  cel: 'isIP(item) || isCIDR(item)',
  holds: isAddressOrRange,
} as const

/** Whether a text is an IP address or a range, as Kubernetes' `isIP` and `isCIDR` read them: no zone, nothing IPv4-mapped. */
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
  if (family === 0 || (bits !== undefined && !BITS.test(bits))) return
  try {
    list.addSubnet(address, bits === undefined ? (family === 4 ? 32 : 128) : Number(bits), family === 4 ? 'ipv4' : 'ipv6')
  } catch {
    // More bits than the family has: see above.
  }
}
