import { expect, test } from 'vitest'
import { decodeSecret, encodeSecret, randomPassword } from './secret-data.ts'

test('a password is 24 base62 characters and never the same', () => {
  const many = new Set(Array.from({ length: 1_000 }, randomPassword))
  expect(many.size).toBe(1_000)
  expect([...many].every((password) => /^[0-9A-Za-z]{24}$/.test(password))).toBe(true)
})

test('what is encoded can be read back, and a missing key is undefined', () => {
  const data = encodeSecret({ password: 'pässword\n' })
  expect(decodeSecret(data, 'password')).toBe('pässword\n')
  expect(decodeSecret(data, 'other')).toBeUndefined()
})
