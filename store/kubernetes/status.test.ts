import { describe, expect, test } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { storeErrorOf } from './status.ts'

const subject = { kind: SharedInstance, name: 'a', namespace: 'n' }
const status = (code: number, reason?: string, causes: readonly object[] = []) => ({
  status: code,
  body: { kind: 'Status', code, reason, message: 'a sentence of the API server', details: { causes } },
})

describe('the code of a refusal comes from its reason and status', () => {
  test.each([
    { what: status(404, 'NotFound'), code: 'not_found' },
    { what: status(409, 'AlreadyExists'), code: 'already_exists' },
    { what: status(409, 'Conflict'), code: 'conflict' },
    { what: status(409), code: 'conflict' },
    { what: status(410, 'Expired'), code: 'gone' },
    { what: status(410, 'Gone'), code: 'gone' },
    { what: status(504, 'Timeout', [{ reason: 'ResourceVersionTooLarge' }]), code: 'gone' },
    { what: status(422, 'Invalid'), code: 'invalid' },
    { what: status(400, 'BadRequest'), code: 'invalid' },
    { what: status(413, 'RequestEntityTooLarge'), code: 'invalid' },
    { what: status(403, 'Forbidden'), code: 'forbidden' },
    { what: status(401, 'Unauthorized'), code: 'unavailable' },
    { what: status(429, 'TooManyRequests'), code: 'unavailable' },
    { what: status(500, 'InternalError'), code: 'unavailable' },
    { what: status(503, 'ServiceUnavailable'), code: 'unavailable' },
    { what: status(504, 'Timeout'), code: 'unavailable' },
    // What stands between, or a kind that is not defined: not the same as an object that is not there.
    { what: { status: 404, body: undefined }, code: 'unavailable' },
    { what: { status: 502, body: '<html>' }, code: 'unavailable' },
  ])('$what.status $what.body.reason: $code', ({ what, code }) => {
    expect(storeErrorOf(what, subject).code).toBe(code)
  })
})

test('causes name the fields', () => {
  const causes = [{ reason: 'FieldValueInvalid', message: 'is immutable', field: 'spec.motor' }, { message: 'elsewhere' }]
  expect(storeErrorOf(status(422, 'Invalid', causes), subject).fields).toEqual([{ field: 'spec.motor', message: 'is immutable' }])
})

test('of a Secret nothing is repeated that the API server says, for it may repeat what was sent', () => {
  const causes = [{ reason: 'FieldValueInvalid', message: 'Invalid value: "hunter2"', field: 'data' }]
  const error = storeErrorOf(status(422, 'Invalid', causes), { ...subject, kind: Secret })
  expect(JSON.stringify([error.message, error.fields])).not.toMatch(/hunter2|sentence/)
  expect(error.fields).toEqual([{ field: 'data', message: 'FieldValueInvalid' }])
})

test('a namespace that is being deleted is named', () => {
  const error = storeErrorOf(status(403, 'Forbidden', [{ reason: 'NamespaceTerminating' }]), subject)
  expect(error.message).toBe('namespace n is being deleted')
})
