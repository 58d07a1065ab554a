import { expect, test } from 'vitest'
import { type LoginState } from '../engine.ts'
import { catalogOf, type Entry } from './catalog.ts'

const id = '0123456789abcdef'
const entry = (name: string, database: boolean, login: LoginState): Entry => ({ name, database, login })

test.each([
  { does: 'a whole spare is ready', entries: [entry(`pool_${id}`, true, 'disabled')], spare: 1, leftovers: [] },
  {
    does: 'a spare without role is rubbish',
    entries: [entry(`pool_${id}`, true, 'absent')],
    spare: 0,
    leftovers: [`pool_${id}`],
  },
  {
    does: 'a spare without database is rubbish',
    entries: [entry(`pool_${id}`, false, 'disabled')],
    spare: 0,
    leftovers: [`pool_${id}`],
  },
  {
    does: 'a half-made database is rubbish',
    entries: [entry(`making_${id}`, true, 'absent')],
    spare: 0,
    leftovers: [`making_${id}`],
  },
  {
    does: 'a discarded database is rubbish',
    entries: [entry(`trash_${id}`, true, 'absent')],
    spare: 0,
    leftovers: [`trash_${id}`],
  },
  { does: 'what somebody else made is left alone', entries: [entry('my_db', true, 'absent')], spare: 0, leftovers: [] },
])('$does', ({ entries, spare, leftovers }) => {
  expect(catalogOf(entries, new Set())).toEqual({ tenants: new Map(), spare, leftovers })
})

test('what is being made right now is not rubbish', () => {
  expect(catalogOf([entry(`making_${id}`, true, 'absent')], new Set([`making_${id}`])).leftovers).toEqual([])
})

test('a tenant is listed with whatever it has', () => {
  const entries = [entry('whole', true, 'enabled'), entry('roleonly', false, 'disabled'), entry('dbonly', true, 'absent')]
  expect(catalogOf(entries, new Set()).tenants).toEqual(
    new Map([
      ['whole', { database: true, login: 'enabled' }],
      ['roleonly', { database: false, login: 'disabled' }],
      ['dbonly', { database: true, login: 'absent' }],
    ]),
  )
})
