import fc from 'fast-check'
import { expect, test } from 'vitest'
import { assertTenantName, freshName, kindOf } from './names.ts'

test.each([
  { name: 'myapp0a1b2c3d4e', kind: 'tenant' },
  { name: 'a', kind: 'tenant' },
  { name: 'postgres', kind: 'foreign' },
  { name: 'template0', kind: 'foreign' },
  { name: 'template1', kind: 'foreign' },
  { name: 'template2', kind: 'tenant' },
  { name: 'pool_0123456789abcdef', kind: 'spare' },
  { name: 'making_0123456789abcdef', kind: 'making' },
  { name: 'trash_0123456789abcdef', kind: 'trash' },
  { name: 'pool_0123456789abcdeg', kind: 'foreign' },
  { name: 'pool_', kind: 'foreign' },
  { name: 'Upper', kind: 'foreign' },
  { name: 'a'.repeat(23), kind: 'foreign' },
  { name: '', kind: 'foreign' },
])('"$name" is $kind', ({ name, kind }) => {
  expect(kindOf(name)).toBe(kind)
})

test('every valid name of a tenant is recognised as one', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z][a-z0-9]{0,21}$/), (name) => {
      fc.pre(!['postgres', 'template0', 'template1'].includes(name))
      expect(kindOf(name)).toBe('tenant')
    }),
  )
})

test.each([
  ['pool', 'spare'],
  ['making', 'making'],
  ['trash', 'trash'],
] as const)('each fresh %s name is recognised and different', (prefix, kind) => {
  expect(kindOf(freshName(prefix))).toBe(kind)
  expect(freshName(prefix)).not.toBe(freshName(prefix))
})

test.each(['postgres', 'pool_0123456789abcdef', 'x; DROP TABLE y'])('%s is rejected as the name of a tenant', (name) => {
  expect(() => assertTenantName(name)).toThrow(expect.objectContaining({ code: 'engine_failed' }) as Error)
})
