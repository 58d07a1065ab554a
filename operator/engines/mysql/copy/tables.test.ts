import { expect, test } from 'vitest'
import { sortByParents } from './tables.ts'

const names = (tables: readonly (readonly [string, readonly string[]])[]) =>
  sortByParents(tables.map(([name, parents]) => ({ name, parents }))).map(({ name }) => name)

test.each([
  {
    what: 'puts a table after its parents',
    tables: [
      ['a', ['b']],
      ['b', ['c']],
      ['c', []],
    ],
    sorted: ['c', 'b', 'a'],
  },
  {
    what: 'keeps the order of unrelated tables',
    tables: [
      ['b', []],
      ['a', []],
    ],
    sorted: ['b', 'a'],
  },
  {
    what: 'ends with a circle',
    tables: [
      ['a', ['b']],
      ['b', ['a']],
      ['c', ['a']],
    ],
    sorted: ['a', 'b', 'c'],
  },
  { what: 'ignores parents that are not there', tables: [['a', ['gone']]], sorted: ['a'] },
] as const)('sortByParents $what', ({ tables, sorted }) => {
  expect(names(tables)).toEqual(sorted)
})
