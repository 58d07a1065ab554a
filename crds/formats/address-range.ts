import { isIP } from 'node:net'

/** Range of addresses of one family. */
export interface AddressRange {
  readonly family: 4 | 6
  /** First address, as a number. */
  readonly first: bigint
  /** Length of the prefix, in bits. */
  readonly bits: number
}

const WIDTH = { 4: 32, 6: 128 } as const
/** Upper 96 bits of an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2). */
const MAPPED = 0xffffn
const MAPPED_BITS = 96

/**
 * Parses an address or a range in CIDR notation (RFC 4632, section 3.1). A range of IPv4-mapped addresses is the range of the IPv4 addresses.
 * @returns undefined for an invalid text, and for a range with address bits after its prefix: `1.2.3.4/0` is probably one address, and not all
 */
export function parseRange(text: string): AddressRange | undefined {
  const read = readRange(text)
  return read?.isExact ? read.range : undefined
}

/** Returns the network that a range with address bits after its prefix is in, in CIDR notation. Undefined for any other text. */
export function networkAround(text: string): string | undefined {
  const read = readRange(text)
  return read && !read.isExact ? textOf(read.range) : undefined
}

/** `isExact`: the text has no address bits after the prefix. */
function readRange(text: string): { readonly range: AddressRange; readonly isExact: boolean } | undefined {
  const [address = '', length, ...rest] = text.split('/')
  const family = familyOf(address)
  if (!family || rest.length > 0) return undefined
  const bits = bitsOf(length, WIDTH[family])
  if (bits === undefined) return undefined
  const number = family === 4 ? numberOf(address.split('.'), 10, 8n) : numberOf(groupsOf(address), 16, 16n)
  if (family === 6 && bits >= MAPPED_BITS && number >> 32n === MAPPED) {
    return masked({ family: 4, first: number & 0xffff_ffffn, bits: bits - MAPPED_BITS })
  }
  return masked({ family, first: number, bits })
}

function familyOf(address: string): 4 | 6 | undefined {
  const family = address.includes('%') ? 0 : isIP(address)
  return family === 4 || family === 6 ? family : undefined
}

function bitsOf(length: string | undefined, width: number): number | undefined {
  if (length === undefined) return width
  const bits = /^\d{1,3}$/.test(length) ? Number(length) : Infinity
  return bits <= width ? bits : undefined
}

const numberOf = (parts: readonly string[], radix: number, width: bigint): bigint =>
  parts.reduce((number, part) => (number << width) | BigInt(parseInt(part, radix)), 0n)

/** Returns the eight groups of an IPv6 address. URL gives an address one form, without dotted decimals. */
function groupsOf(address: string): readonly string[] {
  const [left = '', right = ''] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const [head, tail] = [left, right].map((part) => part.split(':').filter((group) => group !== ''))
  const zeros = Array<string>(8 - (head?.length ?? 0) - (tail?.length ?? 0)).fill('0')
  return [...(head ?? []), ...zeros, ...(tail ?? [])]
}

function masked({ family, first: address, bits }: AddressRange) {
  const rest = BigInt(WIDTH[family] - bits)
  const first = (address >> rest) << rest
  return { range: { family, first, bits }, isExact: first === address }
}

/** Returns the last address of a range, as a number. */
export const lastOf = ({ family, first, bits }: AddressRange): bigint => first | ((1n << BigInt(WIDTH[family] - bits)) - 1n)

/** Returns an address of a family as the hexadecimal digits of its bytes in network order. */
export const hexOf = (family: 4 | 6, address: bigint): string => address.toString(16).padStart(WIDTH[family] / 4, '0')

/** Returns a range in CIDR notation, in one form for each range. */
export function textOf({ family, first, bits }: AddressRange): string {
  const hex = hexOf(family, first)
  if (family === 4) return `${(hex.match(/../g) ?? []).map((byte) => parseInt(byte, 16)).join('.')}/${bits}`
  return `${new URL(`http://[${(hex.match(/..../g) ?? []).join(':')}]`).hostname.slice(1, -1)}/${bits}`
}

/** Whether a range has all addresses of another one. */
export const includes = (outer: AddressRange, inner: AddressRange): boolean =>
  outer.family === inner.family && outer.bits <= inner.bits && outer.first <= inner.first && inner.first <= lastOf(outer)

/** Returns the ranges of a list, sorted, without those that another one includes. Invalid entries are left out. */
export function rangesOf(entries: readonly string[]): readonly AddressRange[] {
  const ranges = entries.flatMap((entry) => parseRange(entry) ?? [])
  const sorted = ranges.toSorted((one, other) =>
    one.family !== other.family
      ? one.family - other.family
      : one.first !== other.first
        ? one.first < other.first
          ? -1
          : 1
        : one.bits - other.bits,
  )
  const kept: AddressRange[] = []
  for (const range of sorted) {
    // Two ranges are apart or one includes the other, so the last kept range is the only one that may include this one.
    const last = kept.at(-1)
    if (!last || !includes(last, range)) kept.push(range)
  }
  return kept
}
