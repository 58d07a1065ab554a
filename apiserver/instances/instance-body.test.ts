import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fieldErrorsOf } from '../../shared/field-errors.ts'
import { IDENTIFIER } from '../../crds/shared-instance.ts'
import { strictDeep } from '../../shared/strict.ts'
import { CreateInstanceBody, expiryOf, PatchInstanceBody, requireAhead } from './instance-body.ts'
import { REGION_ID } from '../../test/builders/resources.ts'

const valid = { identifier: 'pr-42', region: REGION_ID, motor: 'postgresql-15.4.0' }
const now = new Date('2026-01-02T03:04:05.678Z')

/** Returns the dotted paths of all invalid fields. */
function wrong(schema: typeof CreateInstanceBody | typeof PatchInstanceBody, body: unknown): string[] {
  const result = strictDeep(schema).safeParse(body)
  return result.success ? [] : [...new Set(fieldErrorsOf(result.error).map(({ field }) => field))]
}

test.each([
  { does: 'takes the three fields of the contract', body: valid, fields: [] },
  { does: 'takes a ttl', body: { ...valid, ttl: 60 }, fields: [] },
  { does: 'takes the longest ttl', body: { ...valid, ttl: 2_592_000 }, fields: [] },
  { does: 'takes a time with an offset', body: { ...valid, expiresAt: '2026-01-03T00:00:00+02:00' }, fields: [] },
  { does: 'leaves a region that is no UUID to the lookup', body: { ...valid, region: '42' }, fields: [] },
  { does: 'leaves a motor outside the seven to the lookup', body: { ...valid, motor: 'oracle-23' }, fields: [] },
  { does: 'names every missing field', body: {}, fields: ['identifier', 'region', 'motor'] },
  {
    does: 'names every mistyped field',
    body: { identifier: 1, region: null, motor: [] },
    fields: ['identifier', 'region', 'motor'],
  },
  { does: 'names an unknown field', body: { ...valid, ttI: 60 }, fields: ['ttI'] },
  { does: 'refuses a ttl that is too short', body: { ...valid, ttl: 59 }, fields: ['ttl'] },
  { does: 'refuses a ttl that is too long', body: { ...valid, ttl: 2_592_001 }, fields: ['ttl'] },
  { does: 'refuses half a second', body: { ...valid, ttl: 60.5 }, fields: ['ttl'] },
  { does: 'refuses a ttl in text', body: { ...valid, ttl: '60' }, fields: ['ttl'] },
  {
    does: 'refuses ttl and expiresAt together',
    body: { ...valid, ttl: 60, expiresAt: '2026-01-03T00:00:00Z' },
    fields: ['expiresAt'],
  },
  { does: 'refuses a day without a time', body: { ...valid, expiresAt: '2026-01-03' }, fields: ['expiresAt'] },
  { does: 'refuses the 30th of February', body: { ...valid, expiresAt: '2026-02-30T00:00:00Z' }, fields: ['expiresAt'] },
  { does: 'refuses an empty template', body: { ...valid, template: '' }, fields: ['template'] },
])('a create body: $does', ({ body, fields }) => {
  expect(wrong(CreateInstanceBody, body)).toEqual(fields)
})

test.each([
  '',
  ' a',
  '-a',
  "a'b",
  'a"b',
  'a\0b',
  'a\nb',
  'a\n',
  'a\\b',
  'a;b',
  'é',
  '🦊',
  'x'.repeat(64),
  `x'; DROP DATABASE y; --`,
])('the identifier %j is rejected', (identifier) => {
  expect(wrong(CreateInstanceBody, { ...valid, identifier })).toEqual(['identifier'])
})

test('every identifier of the allowed form is accepted', () => {
  fc.assert(
    fc.property(fc.stringMatching(IDENTIFIER), (identifier) => wrong(CreateInstanceBody, { ...valid, identifier }).length === 0),
  )
})

test.each([
  { does: 'takes any one field', body: { isEnabled: false }, fields: [] },
  { does: 'takes null for expiresAt', body: { expiresAt: null }, fields: [] },
  { does: 'takes a ttl', body: { ttl: 60 }, fields: [] },
  { does: 'refuses a ttl that is too short', body: { ttl: 59 }, fields: ['ttl'] },
  { does: 'refuses ttl and expiresAt together', body: { ttl: 60, expiresAt: '2026-01-03T00:00:00Z' }, fields: ['expiresAt'] },
  { does: 'refuses ttl together with the end of expiresAt', body: { ttl: 60, expiresAt: null }, fields: ['expiresAt'] },
  { does: 'may be empty', body: {}, fields: [] },
  { does: 'of an unknown field alone names that alone', body: { motor: 'postgresql-14.4.0' }, fields: ['motor'] },
  { does: 'cannot remove the identifier', body: { identifier: null }, fields: ['identifier'] },
  { does: 'cannot remove isEnabled', body: { isEnabled: null }, fields: ['isEnabled'] },
  { does: 'does not take false in text', body: { isEnabled: 'false' }, fields: ['isEnabled'] },
  { does: 'cannot change the motor', body: { isEnabled: true, motor: 'postgresql-14.4.0' }, fields: ['motor'] },
])('a patch body $does', ({ body, fields }) => {
  expect(wrong(PatchInstanceBody, body)).toEqual(fields)
})

test('a ttl counts from now', () => {
  expect(expiryOf({ ttl: 60 }, now)).toBe('2026-01-02T03:05:05.678Z')
})

test('without ttl and expiresAt an instance never expires', () => {
  expect(expiryOf({}, now)).toBeUndefined()
})

test('a time with an offset is stored in UTC', () => {
  expect(expiryOf({ expiresAt: '2026-01-02T05:05:06+02:00' }, now)).toBe('2026-01-02T03:05:06.000Z')
})

test.each(['2026-01-02T03:05:05.678Z', '2026-01-02T03:05:06Z', '2026-02-01T03:04:05.678Z'])('the time %s is ahead', (time) => {
  expect(() => requireAhead(time, now)).not.toThrow()
})

test.each(['2026-01-02T03:05:05.677Z', '2026-02-01T03:04:05.679Z', '2025-01-01T00:00:00Z'])(
  'the time %s is too near, too far or past',
  (time) => {
    expect(() => requireAhead(time, now)).toThrow(
      expect.objectContaining({ code: 'invalid_request', details: [expect.objectContaining({ field: 'expiresAt' })] }),
    )
  },
)
