import { isIPv4 } from 'node:net'
import { expect, test } from 'vitest'
import { isLoopback } from '../../../shared/loopback.ts'
import { adminHost, callersHost } from './address.ts'

test.each([
  { listen: '127.0.0.1', loopback: true, admin: '127.0.0.1' },
  { listen: '127.8.0.1', loopback: true, admin: '127.8.0.1' },
  { listen: '::1', loopback: true, admin: '::1' },
  { listen: '127.0.0.1.example.com', loopback: false, admin: '127.0.0.1.example.com' },
  { listen: '0.0.0.0', loopback: false, admin: '127.0.0.1' },
  { listen: '::', loopback: false, admin: '::1' },
  { listen: '192.0.2.1', loopback: false, admin: '192.0.2.1' },
])('$listen is dialled by the operator at $admin', ({ listen, loopback, admin }) => {
  expect(isLoopback(listen)).toBe(loopback)
  expect(adminHost(listen)).toBe(admin)
})

test('callers of a wildcard get an address they can dial', () => {
  expect(isIPv4(callersHost('0.0.0.0'))).toBe(true)
  expect(callersHost('192.0.2.1')).toBe('192.0.2.1')
})
