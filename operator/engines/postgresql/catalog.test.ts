import { expect, test } from 'vitest'
import fc from 'fast-check'
import type { LoginState } from '../engine.ts'
import { catalogOf, type Entry, assertTenantName, freshName, kindOf } from './catalog.ts'

const id = '0123456789abcdef'
const entry = (name: string, database: boolean, login: LoginState): Entry => ({ name, database, login })

test.each([
  { does: 'a complete spare is ready', entries: [entry(`pool_${id}`, true, 'disabled')], spare: 1, leftovers: [] },
  {
    does: 'a spare without role is a leftover',
    entries: [entry(`pool_${id}`, true, 'absent')],
    spare: 0,
    leftovers: [`pool_${id}`],
  },
  {
    does: 'a spare without database is a leftover',
    entries: [entry(`pool_${id}`, false, 'disabled')],
    spare: 0,
    leftovers: [`pool_${id}`],
  },
  {
    does: 'an unfinished database is a leftover',
    entries: [entry(`making_${id}`, true, 'absent')],
    spare: 0,
    leftovers: [`making_${id}`],
  },
  {
    does: 'a discarded database is a leftover',
    entries: [entry(`trash_${id}`, true, 'absent')],
    spare: 0,
    leftovers: [`trash_${id}`],
  },
  {
    does: 'a discarded database that its tenant keeps from being renamed is a leftover',
    entries: [{ ...entry('tenant', true, 'enabled'), discardedAs: `trash_${id}` }],
    spare: 0,
    leftovers: ['tenant'],
  },
  { does: 'a database of unknown origin is ignored', entries: [entry('my_db', true, 'absent')], spare: 0, leftovers: [] },
])('$does', ({ entries, spare, leftovers }) => {
  expect(catalogOf(entries, new Set())).toEqual({ tenants: new Map(), spare, leftovers })
})

test('a database that this process is building is no leftover', () => {
  expect(catalogOf([entry(`making_${id}`, true, 'absent')], new Set([`making_${id}`])).leftovers).toEqual([])
})

test('the catalog lists tenants with a missing database or login', () => {
  const entries = [entry('whole', true, 'enabled'), entry('roleonly', false, 'disabled'), entry('dbonly', true, 'absent')]
  expect(catalogOf(entries, new Set()).tenants).toEqual(
    new Map([
      ['whole', { database: true, login: 'enabled' }],
      ['roleonly', { database: false, login: 'disabled' }],
      ['dbonly', { database: true, login: 'absent' }],
    ]),
  )
})

test.each([
  { name: 'myapp0a1b2c3d4e', kind: 'tenant' },
  { name: 'a', kind: 'tenant' },
  { name: 'postgres', kind: 'foreign' },
  { name: 'template0', kind: 'foreign' },
  { name: 'template1', kind: 'foreign' },
  { name: 'template2', kind: 'tenant' },
  { name: 'pool_0123456789abcdef', kind: 'spare' },
  { name: 'making_0123456789abcdef', kind: 'making' },
  { name: 'trash_0123456789abcdef', kind: 'trash' },
  { name: 'pool_0123456789abcdeg', kind: 'foreign' },
  { name: 'pool_', kind: 'foreign' },
  { name: 'Upper', kind: 'foreign' },
  { name: 'a'.repeat(23), kind: 'foreign' },
  { name: '', kind: 'foreign' },
])('"$name" is $kind', ({ name, kind }) => {
  expect(kindOf(name)).toBe(kind)
})

test('every valid name of a tenant is recognised as one', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z][a-z0-9]{0,21}$/), (name) => {
      fc.pre(!['postgres', 'template0', 'template1'].includes(name))
      expect(kindOf(name)).toBe('tenant')
    }),
  )
})

test.each([
  ['pool', 'spare'],
  ['making', 'making'],
  ['trash', 'trash'],
] as const)('each fresh %s name is recognised and different', (prefix, kind) => {
  expect(kindOf(freshName(prefix))).toBe(kind)
  expect(freshName(prefix)).not.toBe(freshName(prefix))
})

test.each(['postgres', 'pool_0123456789abcdef', 'x; DROP TABLE y'])('%s is rejected as the name of a tenant', (name) => {
  expect(() => assertTenantName(name)).toThrow(expect.objectContaining({ code: 'engine_failed' }) as Error)
})
