import { expect, test } from 'vitest'
import { elders } from './elders.ts'

const made = (uid: string, second: number, names: readonly string[]) => ({
  metadata: { uid, creationTimestamp: `2026-01-01T00:00:0${second}Z` },
  names,
})
type Made = ReturnType<typeof made>
const areTwins = (a: Made, b: Made) => a.names.some((name) => b.names.includes(name))
const uids = (objects: readonly Made[]) => elders(objects, areTwins).map(({ metadata }) => metadata.uid)

test.each([
  {
    what: 'all objects without a twin, in their order',
    objects: [made('b', 2, ['x']), made('a', 1, ['y'])],
    inForce: ['b', 'a'],
  },
  { what: 'the older of two twins', objects: [made('a', 2, ['x']), made('b', 1, ['x'])], inForce: ['b'] },
  {
    what: 'the one with the lesser uid of two from the same second',
    objects: [made('b', 1, ['x']), made('a', 1, ['x'])],
    inForce: ['a'],
  },
  {
    what: 'the twin of one that is not in force',
    objects: [made('a', 1, ['x']), made('b', 2, ['x', 'y']), made('c', 3, ['y'])],
    inForce: ['a', 'c'],
  },
])('in force are $what', ({ objects, inForce }) => {
  expect(uids(objects)).toEqual(inForce)
})
