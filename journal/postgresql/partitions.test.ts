import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type FilledPartition, partitionsToEmpty } from './partitions.ts'

const pieces = (table: string, ...sizes: readonly number[]): FilledPartition[] =>
  sizes.map((bytes, day) => ({ table, name: `${table}_${day}`, bytes }))

test.each([
  { does: 'empties nothing while there is room', given: [...pieces('requests', 5, 5)], excess: 0, emptied: [] },
  { does: 'begins with the oldest', given: [...pieces('requests', 5, 5, 5)], excess: 6, emptied: ['requests_0', 'requests_1'] },
  {
    does: 'takes from the table that takes most room, and spares the other',
    given: [...pieces('refusals', 40, 50), ...pieces('requests', 20, 20)],
    excess: 30,
    emptied: ['refusals_0'],
  },
  {
    does: 'takes from the other once that takes more room',
    given: [...pieces('refusals', 40, 10), ...pieces('requests', 20, 20)],
    excess: 50,
    emptied: ['refusals_0', 'requests_0'],
  },
  {
    does: 'empties all where that is not enough',
    given: [...pieces('refusals', 1), ...pieces('requests', 2)],
    excess: 100,
    emptied: ['requests_0', 'refusals_0'],
  },
])('$does', ({ given, excess, emptied }) => {
  expect(partitionsToEmpty(given, excess)).toEqual(emptied)
})

test('no more partitions are selected once enough bytes are freed', () => {
  const some = fc.record({
    table: fc.constantFrom('requests', 'refusals'),
    name: fc.uuid(),
    bytes: fc.integer({ min: 1, max: 100 }),
  })
  fc.assert(
    fc.property(fc.array(some), fc.integer({ min: -10, max: 1_000 }), (given, excess) => {
      const bytesOf = (names: readonly string[]) =>
        given.filter(({ name }) => names.includes(name)).reduce((sum, { bytes }) => sum + bytes, 0)
      const names = partitionsToEmpty(given, excess)
      if (names.length > 0) expect(bytesOf(names.slice(0, -1))).toBeLessThan(excess)
      if (names.length < given.length) expect(bytesOf(names)).toBeGreaterThanOrEqual(excess)
    }),
  )
})
