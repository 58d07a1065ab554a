import { expect, test } from 'vitest'
import { auditedResource } from './audited-resource.ts'

test.each([
  { does: 'a tunnel by its name', spec: { displayName: 'Web', regionId: 1 }, name: 'Web' },
  { does: 'a database by its identifier', spec: { identifier: 'pr-42', motor: 'postgresql-15.4.0' }, name: 'pr-42' },
  { does: 'one that its owner gave no name by that of its object', spec: { regionId: 1 }, name: 'i-b9f3' },
  { does: 'one without a spec by that of its object', spec: undefined, name: 'i-b9f3' },
])('an entry names $does', ({ spec, name }) => {
  const object = { kind: 'Any', metadata: { uid: 'u1', name: 'i-b9f3' } }
  expect(auditedResource(object, spec)).toEqual({ kind: 'Any', id: 'u1', name })
})
