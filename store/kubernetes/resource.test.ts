import { expect, test } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { resourceOf } from './resource.ts'

const metadata = { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1', creationTimestamp: '2030-01-01T00:00:00Z' }

test('what an API server adds to metadata is dropped, and what the port knows is completed', () => {
  const sent = { metadata: { ...metadata, managedFields: [{ manager: 'x' }], selfLink: '/', deletionGracePeriodSeconds: 0 } }
  expect(resourceOf(Secret, sent)).toEqual({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...metadata, generation: 1 },
    type: 'Opaque',
    data: {},
  })
})

test('what an older schema let in is passed as it is, and a field of a newer one is kept', () => {
  const spec = { motor: 'of-old-times', addedLater: { deep: true } }
  expect(resourceOf(SharedInstance, { metadata, spec }).spec).toEqual(spec)
})

test('what is no object at all is refused', () => {
  expect(() => resourceOf(Secret, { kind: 'Status' })).toThrow()
})

test('an object out of a list, which does not say of which kind it is, reads the same as one by itself', () => {
  const body = { metadata, data: {}, type: 'Opaque' }
  const one = resourceOf(Secret, { kind: 'Secret', apiVersion: 'v1', ...body })
  // Whoever remembers a hash of an object goes by its text.
  expect(JSON.stringify(resourceOf(Secret, body))).toBe(JSON.stringify(one))
})
