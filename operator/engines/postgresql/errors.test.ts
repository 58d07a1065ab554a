import pg from 'pg'
import { expect, test } from 'vitest'
import { MooringError } from '../../../shared/errors.ts'
import { engineError, sqlStateOf } from './errors.ts'

function serverSaid(code: string): Error {
  return Object.assign(new pg.DatabaseError('secret details', 14, 'error'), { code })
}

test.each([
  {
    does: 'a refused connection',
    error: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }),
    code: 'engine_unavailable',
  },
  { does: 'a connection that broke', error: new Error('Connection terminated unexpectedly'), code: 'engine_unavailable' },
  { does: 'a starting server', error: serverSaid('57P03'), code: 'engine_unavailable' },
  { does: 'a stopping server', error: serverSaid('57P01'), code: 'engine_unavailable' },
  { does: 'a crashing server', error: serverSaid('57P02'), code: 'engine_unavailable' },
  { does: 'a full server', error: serverSaid('53300'), code: 'engine_unavailable' },
  { does: 'a statement that took too long', error: serverSaid('57014'), code: 'engine_unavailable' },
  { does: 'a connection exception', error: serverSaid('08006'), code: 'engine_unavailable' },
  { does: 'a missing right', error: serverSaid('42501'), code: 'engine_failed' },
  { does: 'a full disk', error: serverSaid('53100'), code: 'engine_failed' },
  { does: 'a bug', error: new TypeError('x is not a function'), code: 'engine_failed' },
  { does: 'an error of ours, kept', error: new MooringError('template_in_use', 'sessions are open'), code: 'template_in_use' },
])('$does is $code', ({ error, code }) => {
  expect(engineError(error).code).toBe(code)
})

test("the server's text is only in the cause, its code in the message", () => {
  const error = engineError(serverSaid('42501'))
  expect(error.message).toBe('the PostgreSQL server refused (SQLSTATE 42501)')
  expect(sqlStateOf(error)).toBe('42501')
})
