import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { type Stored, Table } from './table.ts'

const object = (namespace: string, name: string, resourceVersion: string): Stored => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace, name, uid: name, resourceVersion, generation: 1, creationTimestamp: '' },
})
const keys = fc.record({ namespace: fc.constantFrom('a', 'a-b', 'b'), name: fc.constantFrom('x', 'x-y', 'x.y', 'y', 'a') })
const acts = fc.array(fc.record({ remove: fc.boolean(), key: keys }), { maxLength: 60 })

test('after any puts and removes, a table equals a map, and lists by namespace, then name', () => {
  fc.assert(
    fc.property(acts, (sequence) => {
      const table = new Table()
      const model = new Map<string, Stored>()
      for (const [index, { remove, key }] of sequence.entries()) {
        const stored = object(key.namespace, key.name, String(index))
        if (remove) table.remove(Secret, key)
        else table.put(Secret, stored)
        if (remove) model.delete(`${key.namespace}/${key.name}`)
        else model.set(`${key.namespace}/${key.name}`, stored)
        expect(table.get(Secret, key)).toBe(remove ? undefined : stored)
      }
      const order = ({ metadata }: Stored): string => `${metadata.namespace ?? ''}\0${metadata.name}`
      const expected = [...model.values()].sort((a, b) => (order(a) < order(b) ? -1 : 1))
      expect(table.list(Secret)).toEqual(expected)
      expect(table.list(Secret, 'a')).toEqual(expected.filter(({ metadata }) => metadata.namespace === 'a'))
    }),
  )
})

test('a change of a clone does not affect the original, nor the reverse', () => {
  const table = new Table()
  table.put(Secret, object('a', 'x', '1'))
  const copy = table.clone()
  copy.remove(Secret, { namespace: 'a', name: 'x' })
  copy.put(Secret, object('a', 'y', '2'))
  expect(table.list(Secret).map(({ metadata }) => metadata.name)).toEqual(['x'])
})
