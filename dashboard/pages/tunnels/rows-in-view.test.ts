import { expect, test } from 'vitest'
import { rowsInView } from './rows-in-view.ts'

test.each([
  ['at the top', 0, 100, { first: 0, last: 18 }],
  ['in the middle', 1_000, 100, { first: 42, last: 68 }],
  ['at the end', 1_700, 100, { first: 77, last: 100 }],
  ['with fewer rows than fit', 0, 3, { first: 0, last: 3 }],
  ['scrolled beyond a list that became shorter', 5_000, 10, { first: 10, last: 10 }],
])('rowsInView %s', (_where, top, count, rows) => {
  expect(rowsInView({ top, height: 200, rowHeight: 20, count })).toEqual(rows)
})
