import { expect, test } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { resourceOf } from './resource.ts'

const metadata = { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1', creationTimestamp: '2030-01-01T00:00:00Z' }

test('metadata that the port does not have is dropped, and absent metadata gets defaults', () => {
  const sent = { metadata: { ...metadata, managedFields: [{ manager: 'x' }], selfLink: '/', deletionGracePeriodSeconds: 0 } }
  expect(resourceOf(Secret, sent)).toEqual({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...metadata, generation: 1 },
    type: 'Opaque',
    data: {},
  })
})

test('a body of an older schema is unchanged, and a field of a newer schema is kept', () => {
  const spec = { motor: 'of-old-times', addedLater: { deep: true } }
  expect(resourceOf(SharedInstance, { metadata, spec }).spec).toEqual(spec)
})

test('a value that is not a Kubernetes object is rejected', () => {
  expect(() => resourceOf(Secret, { kind: 'Status' })).toThrow()
})

test('an item of a list, which has no kind, gives the same JSON as the object read by name', () => {
  const body = { metadata, data: {}, type: 'Opaque' }
  const one = resourceOf(Secret, { kind: 'Secret', apiVersion: 'v1', ...body })
  // Callers compare hashes of the JSON text.
  expect(JSON.stringify(resourceOf(Secret, body))).toBe(JSON.stringify(one))
})
