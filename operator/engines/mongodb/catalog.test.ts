import { expect, test } from 'vitest'
import { catalogOf, isTenantName } from './catalog.ts'
import { countConnections } from './watchdog.ts'

const NOTHING = { users: [], roles: [], databases: [] }

test.each([
  { does: 'a login', entries: { users: [{ db: 'app' }] }, state: { database: true, login: 'enabled' } },
  {
    does: 'a disabled login',
    entries: { users: [{ db: 'app', customData: { disabled: true } }] },
    state: { database: true, login: 'disabled' },
  },
  {
    does: 'a suspended login',
    entries: { users: [{ db: 'app', customData: { suspended: true } }] },
    state: { database: true, login: 'enabled' },
  },
  { does: 'a role alone', entries: { roles: [{ db: 'app', role: 'tenant' }] }, state: { database: true, login: 'absent' } },
  { does: 'a database alone', entries: { databases: ['app'] }, state: { database: true, login: 'absent' } },
])('the catalog lists a tenant with $does', ({ entries, state }) => {
  expect(catalogOf({ ...NOTHING, ...entries })).toEqual({ tenants: new Map([['app', state]]), spare: 0, leftovers: [] })
})

test('the catalog lists a discarded database as a leftover alone, and its login until that is removed', () => {
  const roles = ['tenant', 'gone_0123abcd'].map((role) => ({ db: 'app', role }))
  const entries = { ...NOTHING, roles, databases: ['app'] }
  expect(catalogOf(entries)).toEqual({ tenants: new Map(), spare: 0, leftovers: ['app'] })
  const tenants = new Map([['app', { database: false, login: 'enabled' }]])
  expect(catalogOf({ ...entries, users: [{ db: 'app' }] })).toEqual({ tenants, spare: 0, leftovers: ['app'] })
})

test('the catalog ignores databases and logins that no tenant can have', () => {
  const databases = ['admin', 'config', 'local', 'Upper', 'with_underscore']
  expect(catalogOf({ users: [{ db: 'admin' }], roles: [{ db: 'admin', role: 'tenant' }], databases }).tenants.size).toBe(0)
})

test.each([
  ['a', true],
  ['a123456789012345678901', true],
  ['a1234567890123456789012', false],
  ['1a', false],
  ['', false],
  ['local', false],
])('isTenantName(%j) is %s', (name, expected) => {
  expect(isTenantName(name)).toBe(expected)
})

test('countConnections counts each connection of a tenant once, and none of the administrator or without login', () => {
  const of = (user: string, db = user) => ({ type: 'op' as const, effectiveUsers: [{ user, db }] })
  const operations = [
    { ...of('a'), connectionId: 1 },
    { ...of('a'), connectionId: 1 },
    { ...of('a'), connectionId: 2 },
    { ...of('b'), connectionId: 3 },
    { ...of('b') },
    { ...of('mooring', 'admin'), connectionId: 4 },
    { ...of('__system', 'local'), connectionId: 5 },
    { type: 'op' as const, connectionId: 6 },
  ]
  expect(countConnections(operations)).toEqual(
    new Map([
      ['a', 2],
      ['b', 1],
    ]),
  )
})
