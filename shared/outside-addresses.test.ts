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

describe('an address guard', () => {
  test.each(PUBLIC)('allows %s', (address) => expect([outside.allows(address), inside.allows(address)]).toEqual([true, true]))
  test.each(PRIVATE)('allows %s only with private addresses', (address) =>
    expect([outside.allows(address), inside.allows(address)]).toEqual([false, true]),
  )
  test.each(NEVER)('never allows %s', (address) =>
    expect([outside.allows(address), inside.allows(address)]).toEqual([false, false]),
  )

  test.each([
    { host: 'example.com', allowed: [true, true] },
    { host: 'localhost', allowed: [false, true] },
    { host: 'a.LOCALHOST.', allowed: [false, true] },
    { host: '[::1]', allowed: [false, true] },
    { host: '[fe80::1]', allowed: [false, false] },
  ])('decides about the host $host', ({ host, allowed }) => {
    expect([outside.allowsHost(host), inside.allowsHost(host)]).toEqual(allowed)
  })
})
