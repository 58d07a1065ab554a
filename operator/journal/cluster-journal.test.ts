import { DatabaseError } from 'pg'
import { expect, test } from 'vitest'
import { MooringError } from '../../shared/errors.ts'
import { repairAfter } from './cluster-journal.ts'

const said = (code: string): Error => Object.assign(new DatabaseError('no', 2, 'error'), { code })
const away = (cause: Error) => new MooringError('journal_away', 'away', { cause })

test.each([
  { what: 'a wrong password', error: said('28P01'), repair: 'roles' },
  { what: 'a revoked privilege', error: away(said('42501')), repair: 'roles' },
  { what: 'a database that is gone', error: said('3D000'), repair: 'roles' },
  { what: 'a table that is gone', error: away(said('42P01')), repair: 'tables' },
  {
    what: 'a function that is gone, among other errors',
    error: new AggregateError([said('55P03'), said('42883')]),
    repair: 'tables',
  },
  { what: 'both', error: new AggregateError([said('42P01'), said('42501')]), repair: 'roles' },
  { what: 'a lock timeout', error: said('55P03'), repair: undefined },
  { what: 'an unreachable server', error: away(new Error('ECONNREFUSED')), repair: undefined },
  { what: 'a value that is not an error', error: 'text', repair: undefined },
])('after $what: $repair', ({ error, repair }) => {
  expect(repairAfter(error)).toBe(repair)
})
