import { expect, test } from 'vitest'
import { catalogOf, discardedBy, goneMarkOf, kindOf, markedBy, markOf, requestedBy, requestFor } from './catalog.ts'

test('catalogOf lists tenants with a database, a login or both, and nothing of the server', () => {
  const { tenants, leftovers, spare } = catalogOf(
    {
      databases: ['mysql', 'sys', 'information_schema', 'both', 'alone', 'half', 'making_half', 'odd_name', 'stray_both'],
      accounts: [
        { name: 'both', locked: 0 },
        { name: 'login', locked: 1 },
        { name: 'half', locked: 0 },
        { name: 'mooring', locked: 0 },
      ],
    },
    new Set(),
  )
  expect(Object.fromEntries(tenants)).toEqual({
    both: { database: true, login: 'enabled' },
    alone: { database: true, login: 'absent' },
    login: { database: false, login: 'disabled' },
    half: { database: false, login: 'enabled' },
  })
  expect({ leftovers, spare }).toEqual({ leftovers: ['making_half', 'stray_both'], spare: 0 })
})

test('catalogOf counts a discarded database as absent, and lists its mark alone', () => {
  const databases = ['left', 'making_left', 'gone_0123abcd_left', 'gone__other', 'other']
  const accounts = [{ name: 'other', locked: 1 as const }]
  const { tenants, leftovers } = catalogOf({ databases, accounts }, new Set())
  expect(Object.fromEntries(tenants)).toEqual({ other: { database: false, login: 'disabled' } })
  expect(leftovers).toEqual(['gone_0123abcd_left', 'gone__other'])
})

test('catalogOf omits databases that are being built from the leftovers', () => {
  expect(catalogOf({ databases: ['a', 'making_a'], accounts: [] }, new Set(['a'])).leftovers).toEqual([])
})

test.each([
  ['shopabcdefghij', 'tenant'],
  ['making_shop', 'mark'],
  ['stray_shop', 'request'],
  ['stray_making_shop', 'request'],
  ['stray_mysql', 'foreign'],
  ['stray_..', 'foreign'],
  ['gone_0123abcd_shop', 'gone'],
  ['gone__shop', 'gone'],
  ['stray_gone__shop', 'request'],
  ['gone_shop', 'foreign'],
  ['gone_0123abcd_mysql', 'foreign'],
  ['making_mysql', 'foreign'],
  ['making_making_a', 'foreign'],
  ['mysql', 'foreign'],
  ['root', 'foreign'],
  ['with_underscore', 'foreign'],
  ['Upper', 'foreign'],
  ['', 'foreign'],
  ['twentythreecharacters23', 'foreign'],
] as const)('kindOf %s is %s', (name, kind) => {
  expect(kindOf(name)).toBe(kind)
})

test('markedBy is the inverse of markOf', () => {
  expect(markedBy(markOf('shop'))).toBe('shop')
})

test('discardedBy is the inverse of goneMarkOf', () => {
  expect(discardedBy(goneMarkOf('shop', '0123abcd'))).toEqual({ owner: '0123abcd', name: 'shop' })
  expect(discardedBy(goneMarkOf('shop'))).toEqual({ owner: '', name: 'shop' })
})

test('requestedBy is the inverse of requestFor', () => {
  expect(requestedBy(requestFor(markOf('shop')))).toBe('making_shop')
})
