import pg from 'pg'
import { expect, test } from 'vitest'
import { MooringError } from '../../../shared/errors.ts'
import { engineError, sqlStateOf } from './errors.ts'

function serverError(code: string): Error {
  return Object.assign(new pg.DatabaseError('secret details', 14, 'error'), { code })
}

test.each([
  {
    does: 'a refused connection',
    error: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }),
    code: 'engine_unavailable',
  },
  { does: 'a connection that broke', error: new Error('Connection terminated unexpectedly'), code: 'engine_unavailable' },
  { does: 'a starting server', error: serverError('57P03'), code: 'engine_unavailable' },
  { does: 'a stopping server', error: serverError('57P01'), code: 'engine_unavailable' },
  { does: 'a crashing server', error: serverError('57P02'), code: 'engine_unavailable' },
  { does: 'a full server', error: serverError('53300'), code: 'engine_unavailable' },
  { does: 'a statement that took too long', error: serverError('57014'), code: 'engine_unavailable' },
  { does: 'a connection exception', error: serverError('08006'), code: 'engine_unavailable' },
  { does: 'a missing privilege', error: serverError('42501'), code: 'engine_failed' },
  { does: 'a full disk', error: serverError('53100'), code: 'engine_failed' },
  { does: 'a bug of the driver', error: new TypeError('x is not a function'), code: 'engine_failed' },
  {
    does: 'a MooringError, unchanged,',
    error: new MooringError('template_in_use', 'sessions are open'),
    code: 'template_in_use',
  },
])('$does is $code', ({ error, code }) => {
  expect(engineError(error).code).toBe(code)
})

test('the message of an error has the SQLSTATE, and only its cause has the text of the server', () => {
  const error = engineError(serverError('42501'))
  expect(error.message).toBe('the PostgreSQL server refused (SQLSTATE 42501)')
  expect(sqlStateOf(error)).toBe('42501')
})
