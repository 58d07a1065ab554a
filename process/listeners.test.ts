import { expect, test } from 'vitest'
import { isLoopbackHost, wrongHost } from './listeners.ts'

test.each(['localhost', 'LOCALHOST:8080', 'localhost:', '127.0.0.1', '127.8.9.10:9464', '[::1]', '[::1]:8080', undefined])(
  'a listener on loopback answers Host %s',
  (host) => expect(isLoopbackHost(host)).toBe(true),
)

test.each([
  ...['evil.example', 'evil.example:8080', 'localhost.evil.example', '127.0.0.1.evil.example', 'a.localhost', ''],
  ...['::1', '[::2]', '0.0.0.0', '192.0.2.1', '128.0.0.1', '127.0.0.1:1:2', 'localhost@evil.example', 'evil.example/localhost'],
  ...['localhost evil.example', '127.1', '2130706433', '[::1', 'localhost:80a'],
])('a listener on loopback rejects Host %j', (host) => {
  expect(isLoopbackHost(host)).toBe(false)
})

test('a listener on loopback answers the public name, in any case and with any port, but no subdomain of it', () => {
  const names = ['Mooring.example']
  expect(isLoopbackHost('mooring.EXAMPLE:443', names)).toBe(true)
  expect(isLoopbackHost('x.mooring.example', names)).toBe(false)
})

test('a rejection quotes only names and addresses', () => {
  expect(wrongHost('evil.example:80')).toContain('evil.example:80')
  expect(wrongHost('<script>')).not.toContain('<')
})
