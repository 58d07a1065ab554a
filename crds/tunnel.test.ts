import { expect, test } from 'vitest'
import { structuralSchema } from './schema/structural-schema.ts'
import { Tunnel, TunnelSpec } from './tunnel.ts'
import { InvalidObjectError, validate } from '../shared/validate.ts'

const metadata = { name: 'web', namespace: 'acme--prod' }
const named = (displayName: string) => ({ metadata, spec: { regionId: 1, displayName } })

test.each([
  { does: 'of Latin letters', displayName: 'x'.repeat(63) },
  { does: 'outside the Basic Multilingual Plane', displayName: '🚢'.repeat(63) },
])('a display name has at most 63 characters $does', ({ displayName }) => {
  expect(validate(Tunnel, named(displayName)).spec.displayName).toBe(displayName)
  for (const wrong of [`${displayName}x`, '', 'a\n', 'a\u{7f}', 'a\u{85}'])
    expect(() => validate(Tunnel, named(wrong))).toThrow(InvalidObjectError)
})

test('the CRD has the same bound: an API server counts characters too', () => {
  expect(structuralSchema(TunnelSpec).properties?.displayName).toMatchObject({
    maxLength: 63,
    'x-kubernetes-validations': [{ message: 'must be 1 to 63 printable characters' }],
  })
})
