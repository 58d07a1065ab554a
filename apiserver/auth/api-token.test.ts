import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ApiToken } from '../../crds/api-token.ts'
import { Namespace } from '../../crds/core.ts'
import { type ApiTokenTraits, apiToken } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import {
  apiTokenIndexes,
  createApiTokenVerifier,
  deriveApiToken,
  isApiToken,
  randomApiToken,
  sha256OfToken,
} from './api-token.ts'
import { AuthenticationError } from './authenticate.ts'

const BASE62 = Array.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz')

describe('an API token', () => {
  test('has the documented form', () => {
    const token = randomApiToken()
    expect(token).toMatch(/^moor_[0-9A-Za-z]{46}$/)
    expect(isApiToken(token)).toBe(true)
    expect(sha256OfToken(token)).toMatch(/^[0-9a-f]{64}$/)
  })

  test('with one changed character is invalid', () => {
    const change = fc.record({ at: fc.integer({ min: 5, max: 50 }), to: fc.constantFrom(...BASE62) })
    fc.assert(
      fc.property(change, ({ at, to }) => {
        const token = randomApiToken()
        const changed = token.slice(0, at) + to + token.slice(at + 1)
        expect(isApiToken(changed)).toBe(changed === token)
      }),
    )
  })

  test('is never found in other text', () => {
    fc.assert(fc.property(fc.string(), (text) => !isApiToken(text) && !isApiToken(`moor_${text}`)))
    const token = randomApiToken()
    for (const near of [` ${token}`, `${token} `, `${token}\n`, token.toUpperCase(), token.slice(0, -1), `${token}0`]) {
      expect(isApiToken(near)).toBe(false)
    }
  })

  test('is a function of secret and salt', () => {
    const secret = new Uint8Array(32).fill(7)
    expect(deriveApiToken(secret, 'a')).toBe(deriveApiToken(secret, 'a'))
    expect(deriveApiToken(secret, 'a')).not.toBe(deriveApiToken(secret, 'b'))
    expect(deriveApiToken(secret, 'a')).not.toBe(deriveApiToken(new Uint8Array(32).fill(8), 'a'))
    expect(isApiToken(deriveApiToken(secret, 'a'))).toBe(true)
  })

  test('uses each of the 62 characters with equal probability', () => {
    const counts = new Map<string, number>()
    const tokens = 3_000
    for (let at = 0; at < tokens; at++) {
      for (const char of randomApiToken().slice(5, 45)) counts.set(char, (counts.get(char) ?? 0) + 1)
    }
    const expected = (tokens * 40) / BASE62.length
    const chiSquare = BASE62.reduce((sum, char) => sum + ((counts.get(char) ?? 0) - expected) ** 2 / expected, 0)
    // 61 degrees of freedom: by chance above 150 about once in 10^9 runs; a plain remainder of a byte gives over 1000.
    expect(chiSquare).toBeLessThan(150)
  })
})

describe('the principal of an API token', () => {
  const token = randomApiToken()
  const sha256 = sha256OfToken(token)
  const [MADE, LATER] = ['2026-01-01T12:00:00Z', '2026-01-01T12:00:01Z']
  const [ACME, EVE] = ['acme--prod', 'eve--prod']
  const here = (namespace: string, traits: ApiTokenTraits = {}) =>
    apiToken({
      metadata: { namespace, uid: `uid-in-${namespace}`, creationTimestamp: MADE, ...traits.metadata },
      spec: { sha256, ...traits.spec },
    })
  const deletionTimestamp = LATER

  test.each<{ does: string; tokens: readonly ApiToken[]; now?: string; is: string }>([
    { does: 'is the one that has its hash', tokens: [here(ACME), here(EVE, { spec: { sha256: 'f'.repeat(64) } })], is: ACME },
    { does: 'is unknown when no ApiToken has the hash', tokens: [], is: 'invalid' },
    {
      does: 'is unknown while the ApiToken is being deleted',
      tokens: [here(ACME, { metadata: { deletionTimestamp } })],
      is: 'invalid',
    },
    { does: 'is unknown after expiresAt', tokens: [here(ACME, { spec: { expiresAt: LATER } })], now: LATER, is: 'expired' },
    { does: 'is valid for one year when expiresAt is later', tokens: [here(ACME)], now: '2027-01-01T11:59:59Z', is: ACME },
    { does: 'is unknown after one year', tokens: [here(ACME)], now: '2027-01-01T12:00:00Z', is: 'expired' },
    {
      does: 'is unknown when another namespace has an ApiToken with the same hash',
      tokens: [here(EVE, { metadata: { creationTimestamp: LATER } }), here(ACME)],
      is: 'invalid',
    },
  ])('$does', async ({ tokens, now = LATER, is }) => {
    const [apiTokens, namespaces] = [settableCache(ApiToken, apiTokenIndexes), settableCache(Namespace)]
    apiTokens.put(...tokens)
    for (const name of [ACME, EVE]) namespaces.put(namespaceOf(name))
    const verify = createApiTokenVerifier({
      ...{ apiTokens: apiTokens.cache, namespaces: namespaces.cache, now: () => Date.parse(now) },
    })
    const found = await verify(token).then(
      ({ user }) => user,
      (error: unknown) => (error instanceof AuthenticationError ? error.reason : error),
    )
    expect(found).toBe(is.includes('--') ? `mooring:api-token:uid-in-${is}` : is)
  })

  function namespaceOf(name: string) {
    const [organization = '', slug = ''] = name.split('--')
    const labels = { 'mooring.dev/organization': organization, 'mooring.dev/namespace': slug }
    const metadata = { name, labels, uid: name, resourceVersion: '1', generation: 1, creationTimestamp: MADE }
    return { apiVersion: 'v1', kind: 'Namespace', metadata } as const
  }
})
