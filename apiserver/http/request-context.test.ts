import { expect, test } from 'vitest'
import { sourceIpOf, sourceKeyOf } from './request-context.ts'

test.each([
  { address: '192.0.2.1', ip: '192.0.2.1' },
  { address: '::ffff:192.0.2.1', ip: '192.0.2.1' },
  { address: '2001:db8::1', ip: '2001:db8::1' },
  { address: undefined, ip: 'unknown' },
])('$address is $ip', ({ address, ip }) => {
  expect(sourceIpOf(address)).toBe(ip)
})

test.each([
  { ip: '192.0.2.1', key: '192.0.2.1' },
  { ip: '2001:db8:1:2:3:4:5:6', key: '2001:db8:1:2' },
  { ip: '2001:db8::1', key: '2001:db8:0:0' },
  { ip: '::1', key: '0:0:0:0' },
  { ip: 'fe80::', key: 'fe80:0:0:0' },
])('$ip counts as $key', ({ ip, key }) => {
  expect(sourceKeyOf(ip)).toBe(key)
})
