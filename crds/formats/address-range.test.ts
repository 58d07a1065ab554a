import { BlockList } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hexOf, includes, lastOf, networkAround, parseRange, rangesOf, textOf } from './address-range.ts'

const canonical = (text: string): string | undefined => {
  const range = parseRange(text)
  return range && textOf(range)
}

test.each([
  { text: '192.0.2.7', range: '192.0.2.7/32' },
  { text: '192.0.2.0/24', range: '192.0.2.0/24' },
  { text: '192.0.2.7/24', range: undefined },
  { text: '1.2.3.4/0', range: undefined },
  { text: '0.0.0.0/0', range: '0.0.0.0/0' },
  { text: '2001:DB8:0:0::1', range: '2001:db8::1/128' },
  { text: '2001:DB8::/33', range: '2001:db8::/33' },
  { text: '2001:db8::ffff/33', range: undefined },
  { text: '::/0', range: '::/0' },
  { text: '::ffff:192.0.2.7', range: '192.0.2.7/32' },
  { text: '::ffff:192.0.2.0/120', range: '192.0.2.0/24' },
  { text: '::ffff:192.0.2.7/120', range: undefined },
  { text: '::fffe:0:0/95', range: '::fffe:0:0/95' },
  { text: '::ffff:0:0/95', range: undefined },
  { text: '192.0.2.7/33', range: undefined },
  { text: '192.0.2.7/-1', range: undefined },
  { text: '192.0.2.7/', range: undefined },
  { text: '192.0.2.7/8/8', range: undefined },
  { text: 'fe80::1%eth0/64', range: undefined },
  { text: 'localhost', range: undefined },
  { text: '', range: undefined },
])('"$text" is the range $range', ({ text, range }) => {
  expect(canonical(text)).toBe(range)
})

test.each([
  { text: '1.2.3.4/0', network: '0.0.0.0/0' },
  { text: '10.1.2.3/23', network: '10.1.2.0/23' },
  { text: '2001:db8::1/64', network: '2001:db8::/64' },
  { text: '10.1.2.0/23', network: undefined },
  { text: '10.1.2.3', network: undefined },
  { text: '10.1.2.3/33', network: undefined },
])('$text is an address in $network', ({ text, network }) => {
  expect(networkAround(text)).toBe(network)
})

test('ranges are sorted, and none is part of another', () => {
  const texts = ['::1', '10.1.0.0/16', '10.0.0.0/8', 'nonsense', '10.0.0.0/8', '::/64', '9.9.9.9']
  expect(rangesOf(texts).map(textOf)).toEqual(['9.9.9.9/32', '10.0.0.0/8', '::/64'])
})

test('first and last address are in hexadecimal digits', () => {
  const range = parseRange('10.1.2.0/23')
  expect(range && [hexOf(4, range.first), hexOf(4, lastOf(range))]).toEqual(['0a010200', '0a0103ff'])
})

const four = fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 })).map(([address, bits]) => `${address}/${bits}`)
const six = fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 95 })).map(([address, bits]) => `${address}/${bits}`)

test('a range includes an address exactly when Node’s BlockList has it', () => {
  const pairs = fc.oneof(fc.tuple(four, fc.ipV4()), fc.tuple(six, fc.ipV6()))
  fc.assert(
    fc.property(pairs, ([given, address]) => {
      const text = networkAround(given) ?? given
      const [net = '', bits] = text.split('/')
      const family = net.includes(':') ? 'ipv6' : 'ipv4'
      const list = new BlockList()
      list.addSubnet(net, Number(bits), family)
      const [outer, inner] = [parseRange(text), parseRange(address)]
      // A mapped address counts as IPv4.
      fc.pre(inner?.family === outer?.family)
      expect(outer && inner && includes(outer, inner)).toBe(list.check(address, family))
      expect(outer && parseRange(textOf(outer))).toEqual(outer)
    }),
  )
})

test('no text makes the parser throw', () => {
  fc.assert(fc.property(fc.oneof(fc.string(), four, six), (text) => void parseRange(text)))
})
