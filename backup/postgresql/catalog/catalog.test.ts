import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createCatalog } from './catalog.ts'
import { corruptKey, type LogId, walKey } from './keys.ts'

const LOG: LogId = '7-1'

interface Shipped {
  readonly number: number
  readonly markedAt: number | undefined
}

const keyOf = ({ number, markedAt }: Shipped): string =>
  walKey({ log: LOG, segment: { timeline: 1, number }, sha256: `${markedAt ?? 0}`.padStart(64, '0'), markedAt })

const SHIPPED = fc.array(
  fc.record({
    number: fc.integer({ min: 0, max: 30 }),
    markedAt: fc.option(fc.integer({ min: 1, max: 1000 }), { nil: undefined }),
  }),
)

/** Runs by definition: neighbours are in one run. */
function runsOf(shipped: readonly Shipped[]): unknown {
  const numbers = [...new Set(shipped.map(({ number }) => number))].sort((a, b) => a - b)
  const markOf = (number: number): number =>
    Math.max(0, ...shipped.filter((one) => one.number === number).map(({ markedAt }) => markedAt ?? 0))
  const runs: number[][] = []
  for (const number of numbers) {
    const run = runs.at(-1)
    if (run?.at(-1) === number - 1) run.push(number)
    else runs.push([number])
  }
  return runs.map((run) => ({
    first: run[0],
    last: run.at(-1),
    marks: run.filter((number) => markOf(number) > 0).map((segment) => ({ segment, at: markOf(segment) })),
  }))
}

function found(catalog: ReturnType<typeof createCatalog>): unknown {
  return (catalog.archived().wal.get(LOG) ?? []).map(({ first, last, marks }) => ({ first, last, marks }))
}

test('runs of segments are the same in whatever order segments come and go', () => {
  fc.assert(
    fc.property(SHIPPED, SHIPPED, fc.boolean(), (kept, removed, isRead) => {
      const catalog = createCatalog()
      for (const one of [...removed, ...kept]) {
        catalog.add({ key: keyOf(one), sizeBytes: 1 })
        if (isRead) catalog.archived()
      }
      const keys = new Set(kept.map(keyOf))
      for (const one of removed) if (!keys.has(keyOf(one))) catalog.remove(keyOf(one))
      expect(found(catalog)).toEqual(runsOf(kept))
      expect(catalog.storedBytes()).toBe(keys.size)
    }),
  )
})

test('a segment with a note that it is corrupt does not count, until the note goes', () => {
  const catalog = createCatalog()
  const shipped = [1, 2, 3].map((number) => ({ number, markedAt: number }))
  for (const one of shipped) catalog.add({ key: keyOf(one), sizeBytes: 1 })
  const note = corruptKey(keyOf({ number: 2, markedAt: 2 }))
  catalog.add({ key: note, sizeBytes: 1 })
  expect(found(catalog)).toEqual(runsOf(shipped.filter(({ number }) => number !== 2)))
  catalog.remove(note)
  expect(found(catalog)).toEqual(runsOf(shipped))
})
