import { MongoNetworkError, MongoServerError, MongoTopologyClosedError } from 'mongodb'
import { expect, test } from 'vitest'
import { MooringError } from '../../../shared/errors.ts'
import { engineError, serverCodeOf } from './errors.ts'

const server = (code: number) => new MongoServerError({ ok: 0, code, errmsg: 'document of a tenant' })

test.each([
  { does: 'a shutdown', error: server(91), code: 'engine_unavailable' },
  { does: 'no primary', error: server(10_107), code: 'engine_unavailable' },
  { does: 'a missing privilege', error: server(13), code: 'engine_failed' },
  { does: 'a broken connection', error: new MongoNetworkError('reset'), code: 'engine_unavailable' },
  { does: 'a closed client', error: new MongoTopologyClosedError('closed'), code: 'engine_unavailable' },
  {
    does: 'an error of the system',
    error: Object.assign(new Error('refused'), { syscall: 'connect' }),
    code: 'engine_unavailable',
  },
  { does: 'any other error', error: new TypeError('x'), code: 'engine_failed' },
])('$does is $code, and only the cause has its text', ({ error, code }) => {
  const converted = engineError(error)
  expect(converted).toMatchObject({ code, cause: error })
  expect(converted.message).not.toContain('document')
})

test('an error of the engine port stays as it is, and has the code of its cause', () => {
  const error = new MooringError('engine_failed', 'x', { cause: server(13) })
  expect(engineError(error)).toBe(error)
  expect(serverCodeOf(error)).toBe(13)
  expect(serverCodeOf(new Error('x'))).toBeUndefined()
})
