import { expect, test } from 'vitest'
import { claimedStatus, type InstanceTraits, readyCondition, sharedInstance } from '../../test/builders/resources.ts'
import { claimOutcome, claimTimeout, isSwitched } from './instance-waits.ts'

const withReady = (status: 'True' | 'False', reason: string): InstanceTraits => ({
  status: { conditions: [readyCondition(status, reason)] },
})

test.each([
  { does: 'waits while there is no status', traits: {}, done: false },
  { does: 'waits for a server', traits: withReady('False', 'WaitingForServer'), done: false },
  { does: 'waits while its server is unavailable', traits: withReady('False', 'ServerUnavailable'), done: false },
  { does: 'waits while its template is in use', traits: withReady('False', 'TemplateInUse'), done: false },
  { does: 'ends when the database works', traits: { status: claimedStatus }, done: true },
  {
    does: 'does not believe the status of an older spec',
    traits: { metadata: { generation: 2 }, status: claimedStatus },
    done: false,
  },
])('a claim $does', ({ traits, done }) => {
  expect(claimOutcome(sharedInstance(traits)) !== undefined).toBe(done)
})

test.each([
  { reason: 'UnknownRegion', code: 'unknown_region', field: 'region' },
  { reason: 'UnsupportedMotor', code: 'unsupported_motor', field: 'motor' },
  { reason: 'TemplateNotFound', code: 'invalid_request', field: 'template' },
  { reason: 'TemplateNotCopyable', code: 'invalid_request', field: 'template' },
])('$reason rejects a claim with $code', ({ reason, code, field }) => {
  expect(() => claimOutcome(sharedInstance(withReady('False', reason)))).toThrow(
    expect.objectContaining({ code, details: [{ field, message: `because: ${reason}` }] }),
  )
})

test('a claim past the quota is rejected without a field', () => {
  expect(() => claimOutcome(sharedInstance(withReady('False', 'QuotaExceeded')))).toThrow(
    expect.objectContaining({ code: 'quota_exceeded', details: [] }),
  )
})

test.each([
  { reason: 'Disabled', done: true },
  { reason: 'SizeExceeded', done: true },
  { reason: 'Suspended', done: true },
  { reason: 'ExtensionConflict', done: true },
  { reason: 'ServerUnavailable', done: false },
  { reason: 'TemplateNotFound', done: false },
  { reason: 'UnsupportedMotor', done: false },
  { reason: 'QuotaExceeded', done: false },
])('a repeated request for a claimed instance with $reason ends at once: $done', ({ reason, done }) => {
  const instance = sharedInstance({ status: { ...claimedStatus, conditions: [readyCondition('False', reason)] } })
  expect(claimOutcome(instance) !== undefined).toBe(done)
})

test('a claim ends with a conflict when the instance is being deleted', () => {
  const instance = sharedInstance({ metadata: { deletionTimestamp: '2026-01-02T04:00:00Z' }, status: claimedStatus })
  expect(() => claimOutcome(instance)).toThrow(expect.objectContaining({ code: 'conflict' }))
})

test.each([
  { state: 'the cache never had it', last: undefined, code: 'unavailable' },
  { state: 'it waits for a server', last: sharedInstance(withReady('False', 'WaitingForServer')), code: 'unavailable' },
  { state: 'its template is in use', last: sharedInstance(withReady('False', 'TemplateInUse')), code: 'conflict' },
  {
    state: 'a reset waits for its template',
    last: sharedInstance({ status: { ...claimedStatus, conditions: [readyCondition('False', 'TemplateInUse')] } }),
    code: 'unavailable',
  },
])('a claim that times out answers $code: $state', ({ last, code }) => {
  expect(claimTimeout(last).code).toBe(code)
})

test('a claim that times out has Retry-After', () => {
  expect(claimTimeout(undefined).headers).toHaveProperty('Retry-After')
})

const off = { ...claimedStatus, observedGeneration: 2, isEnabled: false }
test.each([
  {
    does: 'is not complete with an older status',
    traits: { spec: { enabled: false }, status: claimedStatus },
    done: false,
  },
  { does: 'is complete when the status shows it', traits: { spec: { enabled: false }, status: off }, done: true },
  { does: 'is not complete before it is applied', traits: { status: off }, done: false },
  {
    does: 'is complete past the size limit',
    traits: { status: { ...off, conditions: [readyCondition('False', 'SizeExceeded', 2)] } },
    done: true,
  },
  {
    does: 'is complete while it is suspended',
    traits: { status: { ...off, conditions: [readyCondition('False', 'Suspended', 2)] } },
    done: true,
  },
])('enabling or disabling $does', ({ traits, done }) => {
  expect(isSwitched(sharedInstance({ metadata: { generation: 2 }, ...traits }), 2)).toBe(done)
})

test('enabling or disabling is not complete until the cache has the new generation', () => {
  expect(isSwitched(sharedInstance({ status: off, spec: { enabled: false } }), 2)).toBe(false)
})
