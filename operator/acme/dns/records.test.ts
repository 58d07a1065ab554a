import { expect, test } from 'vitest'
import { serverIn, serverName } from './exchange.ts'
import { challengeName, tsigSecretIn } from './records.ts'

test.each([
  ['192.0.2.1', { host: '192.0.2.1', port: 53 }, '192.0.2.1'],
  ['192.0.2.1:5353', { host: '192.0.2.1', port: 5353 }, '192.0.2.1:5353'],
  ['ns.example.test:53', { host: 'ns.example.test', port: 53 }, 'ns.example.test'],
  ['[2001:db8::1]', { host: '2001:db8::1', port: 53 }, '[2001:db8::1]'],
  ['[2001:db8::1]:5353', { host: '2001:db8::1', port: 5353 }, '[2001:db8::1]:5353'],
])('the server %s is read', (text, server, shown) => {
  expect(serverIn(text)).toEqual(server)
  expect(serverName(server)).toBe(shown)
})

test.each([
  ['c2VjcmV0LXNlY3JldA==\n', 'secret-secret'],
  ['key "mooring" {\n\talgorithm hmac-sha256;\n\tsecret "c2VjcmV0LXNlY3JldA==";\n};\n', 'secret-secret'],
  ['', undefined],
  ['no key!', undefined],
  ['secret "";', undefined],
])('the key in %j is read', (text, secret) => {
  expect(tsigSecretIn(text)?.toString()).toBe(secret)
})

test('a domain and its wildcard have the same record', () => {
  expect(challengeName('*.tunnel.example.test')).toBe('_acme-challenge.tunnel.example.test')
  expect(challengeName('tunnel.example.test')).toBe('_acme-challenge.tunnel.example.test')
})
