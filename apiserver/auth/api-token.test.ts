import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { deriveApiToken, isApiToken, randomApiToken, sha256OfToken } from './api-token.ts'

const BASE62 = Array.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz')

describe('an API token', () => {
  test('has the documented form', () => {
    const token = randomApiToken()
    expect(token).toMatch(/^moor_[0-9A-Za-z]{46}$/)
    expect(isApiToken(token)).toBe(true)
    expect(sha256OfToken(token)).toMatch(/^[0-9a-f]{64}$/)
  })

  test('with one character changed is not one', () => {
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

  test('derived from the same secret and salt is the same, from others another', () => {
    const secret = new Uint8Array(32).fill(7)
    expect(deriveApiToken(secret, 'a')).toBe(deriveApiToken(secret, 'a'))
    expect(deriveApiToken(secret, 'a')).not.toBe(deriveApiToken(secret, 'b'))
    expect(deriveApiToken(secret, 'a')).not.toBe(deriveApiToken(new Uint8Array(32).fill(8), 'a'))
    expect(isApiToken(deriveApiToken(secret, 'a'))).toBe(true)
  })

  test('uses each of the 62 characters alike', () => {
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
