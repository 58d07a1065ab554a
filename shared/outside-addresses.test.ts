import { describe, expect, test } from 'vitest'
import { createAddressGuard } from './outside-addresses.ts'

const [outside, inside] = [createAddressGuard({ privateAddresses: false }), createAddressGuard({ privateAddresses: true })]

const PUBLIC = ['1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700:4700::1111', '::ffff:1.1.1.1', '::ffff:0101:0101']
const PRIVATE = [
  ...['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '127.0.0.1', '127.255.255.254', '100.64.0.1'],
  ...['::1', 'fc00::1', 'fd12:3456::1', '::ffff:10.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:ffff:127.0.0.1'],
]
const NEVER = [
  ...[
    '0.0.0.0',
    '0.1.2.3',
    '169.254.169.254',
    '169.254.0.1',
    '192.0.0.192',
    '198.18.0.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
  ],
  ...['255.255.255.255', '100.100.100.200', '::', 'fe80::1', 'fe80::1%eth0', 'ff02::1', 'fd00:ec2::254', '64:ff9b::7f00:1'],
  ...[
    '64:ff9b::101:101',
    '64:ff9b:1::1',
    '::ffff:169.254.169.254',
    '::127.0.0.1',
    '::ffff:0:127.0.0.1',
    '2002:7f00:1::',
    '2001::1',
  ],
  ...['2001:db8::1', '100::1', '', 'localhost', '2130706433', '1.1.1.1.1'],
]

const answers = (address: string) => [outside.allows(address, 443), inside.allows(address, 443)]
const url = (host: string, port = 443) => new URL(`https://${host}:${port}/`)

describe('an address guard', () => {
  test.each(PUBLIC)('allows %s', (address) => expect(answers(address)).toEqual([true, true]))
  test.each(PRIVATE)('allows %s only with private addresses', (address) => expect(answers(address)).toEqual([false, true]))
  test.each(NEVER)('never allows %s', (address) => expect(answers(address)).toEqual([false, false]))

  test.each([
    { host: 'example.com', allowed: [true, true] },
    { host: 'localhost', allowed: [false, true] },
    { host: 'a.LOCALHOST.', allowed: [false, true] },
    { host: '[::1]', allowed: [false, true] },
    { host: '[fe80::1]', allowed: [false, false] },
  ])('decides about the host $host', ({ host, allowed }) => {
    expect([outside.allowsUrl(url(host)), inside.allowsUrl(url(host))]).toEqual(allowed)
  })

  test('allows private networks that are named, and no reserved address in them', () => {
    const named = createAddressGuard({ privateAddresses: false, allowedNetworks: ['10.1.0.0/16', 'fd12::/16', '169.254.0.0/16'] })
    const addresses = ['10.1.2.3', '::ffff:10.1.2.3', 'fd12::1', '10.2.0.1', '127.0.0.1', '169.254.169.254', '1.1.1.1']
    expect(addresses.map((address) => named.allows(address, 443))).toEqual([true, true, true, false, false, false, true])
    expect(['10.1.2.3', 'localhost', '10.2.0.1'].map((host) => named.allowsUrl(url(host)))).toEqual([true, false, false])
  })

  test('allows no listener of Mooring, by whichever name, and no host of a tunnel', () => {
    const hasAddress = (address: string, port: number) => ['127.0.0.1', '::1'].includes(address) && port === 8080
    const guard = createAddressGuard({
      privateAddresses: true,
      own: { hasAddress, domains: () => ['tunnel.test', 'tunnel.localhost'] },
    })
    const hosts = ['127.0.0.1', '2130706433', '[::ffff:127.0.0.1]', '[::1]', 'localhost', 'a.localhost.']
    expect(hosts.map((host) => guard.allowsUrl(url(host, 8080)))).toEqual(hosts.map(() => false))
    expect(hosts.map((host) => guard.allowsUrl(url(host, 8081)))).toEqual(hosts.map(() => true))
    expect([guard.allows('::ffff:7f00:1', 8080), guard.allows('127.0.0.1', 8081)]).toEqual([false, true])
    const tunnels = ['0123456789abcdef.tunnel.test', '0123456789ABCDEF.tunnel.test.', '0123456789abcdef.tunnel.localhost']
    expect(tunnels.map((host) => guard.allowsUrl(url(host)))).toEqual(tunnels.map(() => false))
    const others = ['hooks.tunnel.test', 'tunnel.test', '0123456789abcdef.example.com', 'a.0123456789abcdef.tunnel.test']
    expect(others.map((host) => guard.allowsUrl(url(host)))).toEqual(others.map(() => true))
  })
})
