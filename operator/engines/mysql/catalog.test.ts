import { expect, test } from 'vitest'
import { catalogOf, kindOf, markedBy, markOf, requestedBy, requestFor } from './catalog.ts'

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

test('requestedBy is the inverse of requestFor', () => {
  expect(requestedBy(requestFor(markOf('shop')))).toBe('making_shop')
})
