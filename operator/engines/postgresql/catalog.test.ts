import { expect, test } from 'vitest'
import { type LoginState } from '../engine.ts'
import { catalogOf, type Entry } from './catalog.ts'

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
