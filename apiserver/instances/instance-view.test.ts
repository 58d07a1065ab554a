import { expect, test } from 'vitest'
import { claimedStatus, readyCondition, sharedInstance } from '../../test/builders/resources.ts'
import { InstanceView, instanceView } from './instance-view.ts'

const credentials = { password: 'p', uri: 'postgresql://u:p@db.example.com/n', ca: 'PEM' }

test('an instance with credentials shows every field', () => {
  const view = instanceView(sharedInstance({ status: claimedStatus }), { region: 'local', credentials })
  expect(view).toEqual({
    id: '3f1c3a52-5d3c-4a77-9a31-0f5f0c3f8f10',
    name: 'pr42k7q2mz4a7e',
    user: 'pr42k7q2mz4a7e',
    password: 'p',
    isEnabled: true,
    identifier: 'pr-42',
    host: 'db.example.com',
    port: 5432,
    region: 'local',
    createdAt: '2026-01-02T03:04:05.000Z',
    motor: 'postgresql-15.4.0',
    engineVersion: '15.4',
    expiresAt: null,
    uri: 'postgresql://u:p@db.example.com/n',
    tls: { required: true, ca: 'PEM' },
    statusReason: null,
    statusCode: null,
  })
  expect(InstanceView.parse(view)).toEqual(view)
})

test('password, uri and CA are null without credentials', () => {
  const view = instanceView(sharedInstance({ status: claimedStatus }), { region: 'local' })
  expect(view).toMatchObject({ password: null, uri: null, tls: { required: true, ca: null } })
})

test('an instance that is not claimed yet is not enabled, and shows null for what the claim will set', () => {
  const view = instanceView(sharedInstance(), { region: 'local' })
  expect(view).toMatchObject({ name: null, user: null, host: null, port: null, engineVersion: null, isEnabled: false })
  expect(InstanceView.parse(view)).toEqual(view)
})

test('an instance that is being deleted is not enabled', () => {
  const metadata = { deletionTimestamp: '2026-01-02T04:00:00Z' }
  expect(instanceView(sharedInstance({ metadata, status: claimedStatus }), { region: 'local' }).isEnabled).toBe(false)
})

test('expiresAt has milliseconds', () => {
  const instance = sharedInstance({ spec: { expiresAt: '2026-01-03T00:00:00Z' } })
  expect(instanceView(instance, { region: 'local' }).expiresAt).toBe('2026-01-03T00:00:00.000Z')
})

test.each([
  ['127.0.0.1', false],
  ['127.8.0.1', false],
  ['::1', false],
  ['localhost', false],
  ['127.0.0.1.example.com', true],
  ['10.0.0.7', true],
  ['db.example.com', true],
])('on host %s TLS is required: %s', (host, required) => {
  const instance = sharedInstance({ status: { ...claimedStatus, host } })
  expect(instanceView(instance, { region: 'local' }).tls.required).toBe(required)
})

const deletionTimestamp = '2026-01-02T04:00:00Z'
test.each([
  { state: 'works', conditions: [readyCondition('True', 'Claimed')], code: null, why: null },
  {
    ...{ state: 'has no server that runs', conditions: [readyCondition('False', 'ServerUnavailable')] },
    ...{ code: 'ServerUnavailable', why: 'because: ServerUnavailable' },
  },
  {
    ...{ state: 'is being deleted', conditions: [readyCondition('True', 'Claimed')], metadata: { deletionTimestamp } },
    ...{ code: 'Deleting', why: 'the database is being deleted' },
  },
  {
    ...{ state: 'cannot be deleted', conditions: [readyCondition('False', 'CleanupBlocked')], metadata: { deletionTimestamp } },
    ...{ code: 'CleanupBlocked', why: 'because: CleanupBlocked' },
  },
  { state: 'is new', conditions: [], code: 'Claiming', why: 'the database is being created' },
])('an instance that $state shows the reason $code', ({ conditions, code, why, ...rest }) => {
  const view = instanceView(sharedInstance({ ...rest, status: { ...claimedStatus, conditions } }), { region: 'local' })
  expect([view.statusCode, view.statusReason]).toEqual([code, why])
})
