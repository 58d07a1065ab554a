import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ADDRESS_RULE, addressList, plainAddress } from './address-list.ts'

/** Address as its bits, independent of notation. */
interface Address {
  readonly family: 4 | 6
  readonly bits: bigint
}
interface Range extends Address {
  /** Prefix length in bits. */
  readonly length: number
}

const WIDTH = { 4: 32, 6: 128 } as const
/** ::ffff:0:0/96 (RFC 4291, section 2.5.5.2) is IPv4. */
const isMapped = ({ family, bits }: Address) => family === 6 && bits >> 32n === 0xffffn

function written({ family, bits }: Address): string {
  const groups = family === 4 ? 4 : 8
  const size = BigInt(WIDTH[family] / groups)
  const parts = Array.from({ length: groups }, (_, index) => (bits >> (size * BigInt(groups - 1 - index))) & ((1n << size) - 1n))
  return family === 4 ? parts.join('.') : parts.map((part) => part.toString(16)).join(':')
}

/** Reference implementation: same family, and same leading bits. */
function isIn({ family, bits }: Address, range: Range): boolean {
  const rest = BigInt(WIDTH[range.family] - range.length)
  return family === range.family && bits >> rest === range.bits >> rest
}

const families = fc.constantFrom<4 | 6>(4, 6)
const addressOf = (family: 4 | 6) =>
  fc.oneof(
    fc.bigInt({ min: 0n, max: (1n << BigInt(WIDTH[family])) - 1n }),
    fc.bigInt({ min: 0n, max: 0xffff_ffffn }),
    fc.constant(0n),
  )
const addresses: fc.Arbitrary<Address> = families
  .chain((family) => fc.record({ family: fc.constant(family), bits: addressOf(family) }))
  .filter((address) => !isMapped(address))
const ranges: fc.Arbitrary<Range> = addresses.chain(({ family, bits }) =>
  fc
    .integer({ min: 0, max: WIDTH[family] })
    .map((length) => ({ family, length, bits: (bits >> BigInt(WIDTH[family] - length)) << BigInt(WIDTH[family] - length) })),
)

/** Address that differs from the range in one bit, which may be part of the prefix. */
const near = (range: Range) =>
  fc
    .integer({ min: 0, max: WIDTH[range.family] - 1 })
    .map((bit): Address => ({ family: range.family, bits: range.bits ^ (1n << BigInt(bit)) }))
    .filter((address) => !isMapped(address))

/** Ranges, and an address that some of them may contain. */
const questions = fc.array(ranges, { minLength: 1, maxLength: 5 }).chain((list) =>
  fc.record({
    list: fc.constant(list),
    asked: fc.oneof(addresses, ...list.flatMap((range) => [fc.constant(range), near(range)])),
  }),
)

test('a list allows exactly the addresses in its ranges, and a range only addresses of its own family', () => {
  fc.assert(
    fc.property(questions, ({ list, asked }) => {
      const entries = list.map((range) =>
        range.length === WIDTH[range.family] ? written(range) : `${written(range)}/${range.length}`,
      )
      expect(addressList(entries).allows(written(asked))).toBe(list.some((range) => isIn(asked, range)))
    }),
    { numRuns: 2_000 },
  )
})

test.each([
  { entries: ['::/0'], address: '192.0.2.1', allows: false },
  { entries: ['::/0'], address: '::ffff:192.0.2.1', allows: false },
  { entries: ['::/0'], address: '2001:db8::1', allows: true },
  { entries: ['::/64'], address: '192.0.2.1', allows: false },
  { entries: ['0.0.0.0/0'], address: '2001:db8::1', allows: false },
  { entries: ['0.0.0.0/0'], address: '::1', allows: false },
  { entries: ['0.0.0.0/0', '::/0'], address: '192.0.2.1', allows: true },
  { entries: ['0.0.0.0/0', '::/0'], address: '2001:db8::1', allows: true },
  { entries: ['192.0.2.0/24'], address: '::ffff:192.0.2.1', allows: true },
  { entries: ['192.0.2.0/24'], address: '::FFFF:c000:201', allows: true },
  { entries: ['192.0.2.0/24'], address: '0:0:0:0:0:ffff:c000:201', allows: true },
  { entries: ['192.0.2.0/24'], address: '::c000:201', allows: false },
  { entries: ['fe80::/10'], address: 'fe80::1%eth0', allows: true },
  { entries: [], address: '192.0.2.1', allows: true },
  { entries: ['192.0.2.0/33'], address: '192.0.2.1', allows: false },
  { entries: ['1.2.3.4/'], address: '192.0.2.1', allows: false },
  { entries: ['192.0.2.1/0'], address: '192.0.2.1', allows: false },
  { entries: ['192.0.2.1/24'], address: '192.0.2.1', allows: false },
  { entries: ['192.0.2.1/32'], address: '192.0.2.1', allows: true },
  { entries: ['::1/0'], address: '::1', allows: false },
  { entries: ['nonsense'], address: '192.0.2.1', allows: false },
  { entries: ['0.0.0.0/0'], address: '', allows: false },
])('the list $entries allows $address: $allows', ({ entries, address, allows }) => {
  expect(addressList(entries).allows(address)).toBe(allows)
})

const PREFIX_RULE = 'must be an IP address or a range such as 203.0.113.0/24, with a prefix of 0 to 32 bits (IPv6: 0 to 128)'

test.each([
  { entry: '1.2.3.4/0', says: 'has address bits after its prefix: write 1.2.3.4, or 0.0.0.0/0 for all addresses' },
  { entry: '10.1.2.3/23', says: 'has address bits after its prefix: write 10.1.2.0/23, or 10.1.2.3 for the one address' },
  { entry: '2001:db8::1/64', says: 'has address bits after its prefix: write 2001:db8::/64, or 2001:db8::1 for the one address' },
  ...['here', '1.2.3.4/33', '1.2.3.4/-1', '1.2.3.4/', '1.2.3.4/08', '2001:db8::/129'].map((entry) => ({
    entry,
    says: PREFIX_RULE,
  })),
])('the rule says of $entry what was probably meant', ({ entry, says }) => {
  expect([ADDRESS_RULE.holds(entry), ADDRESS_RULE.messageOf(entry)]).toEqual([false, says])
})

test('plainAddress converts every notation of an IPv4-mapped address, and no other address', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 0xffff_ffffn }), fc.boolean(), (bits, dotted) => {
      const plain = written({ family: 4, bits })
      expect(plainAddress(dotted ? `::ffff:${plain}` : written({ family: 6, bits: (0xffffn << 32n) | bits }))).toBe(plain)
    }),
  )
  for (const address of ['2001:db8:ffff::1', '::ffff:0:c000:201', '::1', 'ffff::', '192.0.2.1', '', 'ffff:'])
    expect(plainAddress(address)).toBe(address)
})
