import { DatabaseError } from 'pg'
import { expect, test } from 'vitest'
import { MooringError } from '../../shared/errors.ts'
import { redoAfter } from './redo.ts'

const said = (code: string): Error => Object.assign(new DatabaseError('no', 2, 'error'), { code })
const away = (cause: Error) => new MooringError('journal_away', 'away', { cause })

test.each([
  { what: 'a wrong password', error: said('28P01'), redo: 'roles' },
  { what: 'a right that was taken away', error: away(said('42501')), redo: 'roles' },
  { what: 'a database that is gone', error: said('3D000'), redo: 'roles' },
  { what: 'a table that is gone', error: away(said('42P01')), redo: 'tables' },
  {
    what: 'a function that is gone, among other errors',
    error: new AggregateError([said('55P03'), said('42883')]),
    redo: 'tables',
  },
  { what: 'both', error: new AggregateError([said('42P01'), said('42501')]), redo: 'roles' },
  { what: 'a lock that was not had in time', error: said('55P03'), redo: undefined },
  { what: 'a server that is away', error: away(new Error('ECONNREFUSED')), redo: undefined },
  { what: 'what is no error', error: 'text', redo: undefined },
])('after $what: $redo', ({ error, redo }) => {
  expect(redoAfter(error)).toBe(redo)
})
