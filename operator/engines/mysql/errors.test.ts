import { expect, test } from 'vitest'
import { MooringError } from '../../../shared/errors.ts'
import { engineError, errnoOf } from './errors.ts'

const ofServer = (errno: number) => Object.assign(new Error('text of the server'), { errno, sqlState: 'HY000', code: 'ER_X' })

test.each([
  { what: 'too many connections', error: ofServer(1040), code: 'engine_unavailable' },
  { what: 'a lock wait', error: ofServer(1205), code: 'engine_unavailable' },
  { what: 'a syntax error', error: ofServer(1064), code: 'engine_failed' },
  {
    what: 'a refused connection',
    error: Object.assign(new Error('x'), { errno: -111, code: 'ECONNREFUSED' }),
    code: 'engine_unavailable',
  },
  { what: 'a mistake in the driver', error: new TypeError('x'), code: 'engine_failed' },
])('engineError of $what has the code $code, without the text of the cause', ({ error, code }) => {
  const converted = engineError(error)
  expect(converted).toMatchObject({ code, cause: error })
  expect(converted.message).not.toContain('text of the server')
})

test('engineError keeps an error of the engine', () => {
  const error = new MooringError('template_in_use', 'x')
  expect(engineError(error)).toBe(error)
})

test('errnoOf finds the number in a cause, and none in an error of the connection', () => {
  expect(errnoOf(engineError(ofServer(1205)))).toBe(1205)
  expect(errnoOf(Object.assign(new Error('x'), { errno: -104, code: 'ECONNRESET' }))).toBeUndefined()
})
