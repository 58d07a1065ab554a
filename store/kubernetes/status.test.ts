import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { storeErrorOf } from './status.ts'

const request = { method: 'PATCH', path: '/apis/mooring.dev/v1alpha1/namespaces/n/sharedinstances/a/status' } as const
const subject = { kind: SharedInstance, name: 'a', namespace: 'n', request }
const status = (code: number, reason?: string, causes: readonly object[] = []) => ({
  status: code,
  body: { kind: 'Status', code, reason, message: 'a sentence of the API server', details: { causes } },
})

describe('the code of an error comes from its reason and status', () => {
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
    // A proxy, or a kind that the server does not serve; this differs from an object that does not exist.
    { what: { status: 404, body: undefined }, code: 'unavailable' },
    { what: { status: 502, body: '<html>' }, code: 'unavailable' },
  ])('$what.status $what.body.reason: $code', ({ what, code }) => {
    expect(storeErrorOf(what, subject).code).toBe(code)
  })
})

test.each([
  {
    what: status(403, 'Forbidden'),
    says: 'the cluster does not allow Mooring to patch sharedinstances/status a in namespace n; its administrator can say why',
  },
  { what: status(422, 'Invalid'), says: 'SharedInstance is invalid' },
  { what: status(500, 'InternalError'), says: 'the API server failed to process the request' },
  { what: status(404, 'NotFound'), says: 'SharedInstance a or its namespace does not exist' },
])('the message is "$says"; the text of the API server is only in the cause', ({ what, says }) => {
  const error = storeErrorOf(what, subject)
  expect(error).toMatchObject({ message: says, cause: { message: 'a sentence of the API server' } })
})

const ALL = '/api/v1/secrets'
test.each([
  { request: { method: 'GET', path: `${ALL}/a` }, name: 'a', says: 'get secrets a' },
  { request: { method: 'GET', path: ALL }, says: 'list secrets' },
  { request: { method: 'GET', path: ALL, query: { watch: 'true' } }, says: 'watch secrets' },
  { request: { method: 'POST', path: ALL }, name: 'a', says: 'create secrets' },
  { request: { method: 'PUT', path: `${ALL}/a` }, name: 'a', says: 'update secrets a' },
  { request: { method: 'DELETE', path: `${ALL}/a` }, name: 'a', says: 'delete secrets a' },
  { request: { method: 'DELETE', path: ALL }, says: 'deletecollection secrets' },
] as const)('a rejection says that Mooring may not $says', ({ request, says, ...named }) => {
  const error = storeErrorOf(status(403, 'Forbidden'), { kind: Secret, request, ...named })
  expect(error.message).toBe(`the cluster does not allow Mooring to ${says}; its administrator can say why`)
})

test('fields come from the causes, and are only fields of the spec', () => {
  const causes = [
    { reason: 'FieldValueInvalid', message: 'is immutable', field: 'spec.motor' },
    { reason: 'FieldValueInvalid', message: 'not on a Friday', field: 'metadata.labels[team]' },
    { message: 'elsewhere' },
  ]
  expect(storeErrorOf(status(422, 'Invalid', causes), subject).fields).toEqual([{ field: 'spec.motor', message: 'is immutable' }])
})

test('the error about a Secret has no text of the API server, which may quote the request', () => {
  const causes = [{ reason: 'FieldValueInvalid', message: 'Invalid value: "hunter2"', field: 'data' }]
  const error = storeErrorOf(status(422, 'Invalid', causes), { ...subject, kind: Secret })
  expect(inspect(error)).not.toMatch(/hunter2|sentence/)
  expect(error.fields).toEqual([])
})

test('the error names a namespace that is being deleted', () => {
  const error = storeErrorOf(status(403, 'Forbidden', [{ reason: 'NamespaceTerminating' }]), subject)
  expect(error.message).toBe('namespace n is being deleted')
})
