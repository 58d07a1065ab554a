import { BlockList, isIP } from 'node:net'

/** Whether an address is in a firewall list. An empty list lets everyone in. */
export interface AddressList {
  allows(address: string): boolean
}

/** What an IPv4 client of a dual-stack socket looks like (RFC 4291, section 2.5.5.2). */
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/** The address as lists and logs have it: an IPv4-mapped one is IPv4, a zone is left out. */
export function plainAddress(address: string): string {
  const [bare = ''] = address.split('%')
  return MAPPED.exec(bare)?.[1] ?? bare
}

/** Of addresses and CIDR ranges. An entry that cannot be read lets nobody in, and does not open the list to everyone. */
export function addressList(entries: readonly string[]): AddressList {
  if (entries.length === 0) return { allows: () => true }
  const list = new BlockList()
  for (const entry of entries) add(list, entry)
  return {
    allows(address) {
      const plain = plainAddress(address)
      const family = isIP(plain)
      return family !== 0 && list.check(plain, family === 4 ? 'ipv4' : 'ipv6')
    },
  }
}

function add(list: BlockList, entry: string): void {
  const [address = '', bits] = entry.split('/')
  const family = isIP(address)
  if (family === 0) return
  try {
    list.addSubnet(address, bits === undefined ? (family === 4 ? 32 : 128) : Number(bits), family === 4 ? 'ipv4' : 'ipv6')
  } catch {
    // More bits than the family has: see above.
  }
}
