import { expect, test } from 'vitest'
import { sharedInstance } from '../../../test/builders/resources.ts'
import { matches } from './instances.ts'
import { specPatch } from './change-instance.ts'

test.each<[Parameters<typeof matches>[1], boolean]>([
  [{}, true],
  [{ identifier: 'pr-42' }, true],
  [{ identifier: 'pr-4' }, false],
  [{ region: '0B8F5D0E-6A55-4C6E-9A6B-4F6F1D1C0A01' }, true],
  [{ region: 'local' }, false],
  [{ motor: 'postgresql-15.4.0', identifier: 'pr-42' }, true],
  [{ motor: 'postgresql-14.4.0', identifier: 'pr-42' }, false],
])('the filter %j matches: %s', (filter, expected) => {
  expect(matches(sharedInstance(), filter)).toBe(expected)
})

test.each([
  [{ isEnabled: false }, { enabled: false }],
  [{ identifier: 'new' }, { identifier: 'new' }],
  [{ expiresAt: null }, { expiresAt: null }],
  [{ expiresAt: '2026-01-02T05:04:05+01:00' }, { expiresAt: '2026-01-02T04:04:05.000Z' }],
])('the patch %j changes exactly %j of the spec', (body, spec) => {
  expect(specPatch(body)).toEqual(spec)
})
