import type { IncomingHttpHeaders } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { requireSameOrigin } from './same-origin.ts'

const isAccepted = (method: string, headers: IncomingHttpHeaders, encrypted = true): boolean => {
  const socket = Object.assign(new Socket(), { encrypted })
  try {
    requireSameOrigin({ method, headers: { host: 'a.example:8443', ...headers }, socket })
    return true
  } catch {
    return false
  }
}
const OWN = 'https://a.example:8443'

test.each<[string, boolean, string, IncomingHttpHeaders]>([
  ['accepts a change of its own page', true, 'POST', { origin: OWN, 'sec-fetch-site': 'same-origin' }],
  ['accepts a change of its own page in a browser without Fetch Metadata', true, 'DELETE', { origin: OWN }],
  ['accepts a read without Origin', true, 'GET', { 'sec-fetch-site': 'same-origin' }],
  ['accepts a read without either header', true, 'GET', {}],
  ['rejects a change without Origin', false, 'POST', { 'sec-fetch-site': 'same-origin' }],
  ['rejects a change of an opaque origin', false, 'POST', { origin: 'null' }],
  ['rejects a change of another port', false, 'PATCH', { origin: 'https://a.example' }],
  ['rejects a change of another host', false, 'POST', { origin: 'https://a.example.evil.example:8443' }],
  ['rejects a change of a page without encryption', false, 'POST', { origin: 'http://a.example:8443' }],
  ['rejects a change of a neighbour on the same site', false, 'POST', { origin: OWN, 'sec-fetch-site': 'same-site' }],
  ['rejects a read of another site', false, 'GET', { 'sec-fetch-site': 'cross-site' }],
  ['rejects a read that is a navigation', false, 'GET', { 'sec-fetch-site': 'none' }],
  ['rejects a read with a foreign Origin', false, 'GET', { origin: 'https://evil.example' }],
  ['rejects a host that is no host', false, 'POST', { host: '/', origin: OWN }],
])('requireSameOrigin %s', (_does, accepted, method, headers) => {
  expect(isAccepted(method, headers)).toBe(accepted)
})

test('without encryption, as behind a proxy that ends TLS, either scheme is right', () => {
  for (const scheme of ['https', 'http']) expect(isAccepted('POST', { origin: `${scheme}://a.example:8443` }, false)).toBe(true)
  expect(isAccepted('POST', { origin: 'https://b.example:8443' }, false)).toBe(false)
})
