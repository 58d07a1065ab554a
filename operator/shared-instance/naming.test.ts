import fc from 'fast-check'
import { expect, test } from 'vitest'
import { IDENTIFIER } from '../../crds/shared-instance.ts'
import { suffixOf, tenantName, tenantSuffix } from './naming.ts'

const uid = '3f1c3a52-5d3c-4a77-9a31-0f5f0c3f8f10'

test.each([
  ['PR #42: Fix/login', 'pr42fixlogin'],
  ['9lives', 'd9lives'],
  ['a', 'a'],
  ['feature/a-very-long-branch-name', 'featureavery'],
])('the identifier %j gives the stem %j', (identifier, stem) => {
  expect(tenantName(identifier, uid)).toBe(stem + tenantSuffix(uid))
})

test('every allowed identifier gives a name that needs no quoting and can be traced to its uid', () => {
  fc.assert(
    fc.property(fc.stringMatching(IDENTIFIER), fc.uuid(), (identifier, id) => {
      const name = tenantName(identifier, id)
      expect(name).toMatch(/^[a-z][a-z0-9]{9,21}$/)
      expect(suffixOf(name)).toBe(tenantSuffix(id))
    }),
  )
})

test.each(['postgres', 'pool_0123456789abcdef', 'template1', 'making_00', 'trash_00'])(
  'the name %s belongs to no tenant',
  (name) => {
    expect(suffixOf(name)).toBeUndefined()
  },
)
