import { describe, expect, test } from 'vitest'
import { logOf } from './keys.ts'
import type { Manifest } from './manifest.ts'
import { type Archived, intervalsOf, planRestore, windowOf, windowsOf } from './restorable.ts'
import { createRuns } from './runs.ts'

const SYSTEM = '7000000000000000001'
/** Times are seconds after this one. */
const ZERO = Date.parse('2026-11-25T10:00:00.000Z')
const at = (seconds: number): string => new Date(ZERO + seconds * 1000).toISOString()

interface Base {
  readonly start: number
  readonly stop?: number
  readonly finished: number
  readonly timeline?: number
  readonly system?: string
}

function base({ start, stop = start, finished, timeline = 1, system = SYSTEM }: Base): Manifest {
  const id = `20261125T1000${String(start).padStart(2, '0')}Z-0000`
  return {
    ...{ format: 1, id, kind: 'scheduled', engineVersion: '15.4', systemIdentifier: system, timeline },
    ...{ startSegment: start, stopSegment: stop, startedAt: at(finished - 1), finishedAt: at(finished) },
    ...{ dataBytes: 1, databases: [], parts: [{ key: `base/${id}/data-0001.tar.gz`, sizeBytes: 1, sha256: '0'.repeat(64) }] },
  }
}

/** Segments, each with the time of its mark in seconds, or null. */
type Segments = Readonly<Record<number, number | null>>

interface Given {
  readonly bases: readonly Base[]
  readonly wal: Segments
  /** WAL of timeline 2. */
  readonly next?: Segments
  /** WAL of another data directory. */
  readonly other?: Segments
  readonly quiet?: { readonly markedAt: number; readonly until: number }
}

function archived({ bases, wal, next = {}, other = {}, quiet }: Given): Archived {
  const runs = createRuns()
  const add = (segments: Segments, systemIdentifier: string, timeline: number): void => {
    for (const [number, mark] of Object.entries(segments)) {
      runs.add(logOf({ systemIdentifier, timeline }), Number(number), mark === null ? undefined : ZERO + mark * 1000)
    }
  }
  add(wal, SYSTEM, 1)
  add(next, SYSTEM, 2)
  add(other, '42', 1)
  const scaled = quiet && { markedAt: ZERO + quiet.markedAt * 1000, until: ZERO + quiet.until * 1000 }
  return { bases: bases.map(base), wal: runs.all(), quiet: scaled ? [scaled] : [] }
}

const ONE: Base = { start: 3, finished: 10 }

const WINDOWS: readonly (Given & { readonly name: string; readonly window: readonly [number, number] | null })[] = [
  { name: 'is empty without anything', bases: [], wal: {}, window: null },
  { name: 'is empty without a backup', bases: [], wal: { 3: 20, 4: 40 }, window: null },
  { name: 'is empty without WAL', bases: [ONE], wal: {}, window: null },
  { name: 'is empty without a mark', bases: [ONE], wal: { 3: null, 4: null }, window: null },
  {
    name: 'begins at the end of the backup, and ends at the last mark',
    bases: [ONE],
    wal: { 3: null, 4: 20, 5: 40 },
    window: [10, 40],
  },
  { name: 'does not count segments after the last mark', bases: [ONE], wal: { 3: null, 4: 20, 5: null }, window: [10, 20] },
  { name: 'is empty when the last mark is before the end of the backup', bases: [ONE], wal: { 3: 5 }, window: null },
  { name: 'has one moment when the mark is at the end of the backup', bases: [ONE], wal: { 3: 10 }, window: [10, 10] },
  { name: 'is empty without the first segment of the backup', bases: [ONE], wal: { 4: 20, 5: 40 }, window: null },
  {
    name: 'is empty without the last segment of the backup',
    bases: [{ ...ONE, stop: 5 }],
    wal: { 3: null, 4: 20 },
    window: null,
  },
  {
    name: 'is empty without a middle segment of the backup',
    bases: [{ ...ONE, stop: 5 }],
    wal: { 3: null, 5: 20 },
    window: null,
  },
  { name: 'does not count segments before the backup', bases: [ONE], wal: { 1: 1, 2: 2, 3: null, 4: 20 }, window: [10, 20] },
  { name: 'ends before a gap', bases: [ONE], wal: { 3: null, 4: 20, 6: 60, 7: 80 }, window: [10, 20] },
  {
    name: 'begins with the oldest backup',
    bases: [{ start: 6, finished: 50 }, ONE],
    wal: { 3: null, 4: 20, 5: 40, 6: null, 7: 60 },
    window: [10, 60],
  },
  {
    name: 'begins anew with the first backup after a gap',
    bases: [ONE, { start: 7, finished: 70 }],
    wal: { 3: null, 4: 20, 6: 60, 7: null, 8: 80 },
    window: [70, 80],
  },
  {
    name: 'stays the old one until the backup after a gap has its WAL',
    bases: [ONE, { start: 7, finished: 70 }],
    wal: { 3: null, 4: 20, 6: 60, 7: null },
    window: [10, 20],
  },
  {
    name: 'begins with a newer backup when the WAL of the oldest is gone',
    bases: [ONE, { start: 6, finished: 50 }],
    wal: { 4: 20, 5: 40, 6: null, 7: 60 },
    window: [50, 60],
  },
  { name: 'does not take the WAL of another timeline', bases: [ONE], wal: { 3: null }, next: { 4: 20 }, window: null },
  {
    name: 'is that of a newer timeline with a backup',
    bases: [ONE, { start: 5, finished: 50, timeline: 2 }],
    wal: { 3: null, 4: 20 },
    next: { 4: 40, 5: null, 6: 60 },
    window: [50, 60],
  },
  {
    name: 'does not take the WAL of another data directory',
    bases: [ONE],
    wal: { 3: null },
    other: { 3: 20, 4: 40 },
    window: null,
  },
  {
    name: 'lasts while nothing is committed',
    bases: [ONE],
    wal: { 3: null, 4: 20 },
    quiet: { markedAt: 20, until: 300 },
    window: [10, 300],
  },
  {
    name: 'does not last when the quiet time follows another mark',
    bases: [ONE],
    wal: { 3: null, 4: 20 },
    quiet: { markedAt: 40, until: 300 },
    window: [10, 20],
  },
  {
    name: 'does not last behind a newer mark',
    bases: [ONE],
    wal: { 3: null, 4: 20, 5: 40 },
    quiet: { markedAt: 20, until: 300 },
    window: [10, 40],
  },
  {
    name: 'does not last over a gap',
    bases: [ONE],
    wal: { 3: null, 4: 20, 6: 60 },
    quiet: { markedAt: 60, until: 300 },
    window: [10, 20],
  },
  { name: 'ends at the latest mark when the clock was set back', bases: [ONE], wal: { 3: null, 4: 40, 5: 20 }, window: [10, 40] },
  {
    name: 'does not last when the clock was set back',
    bases: [ONE],
    wal: { 3: null, 4: 40, 5: 20 },
    quiet: { markedAt: 20, until: 30 },
    window: [10, 40],
  },
]

test.each(WINDOWS)('the window $name', ({ window, ...given }) => {
  const expected = window && { earliest: at(window[0]), latest: at(window[1]) }
  expect(windowOf(intervalsOf(archived(given)))).toEqual(expected)
})

test('the windows before and after a gap are both restorable', () => {
  const given = { bases: [ONE, { start: 7, finished: 70 }], wal: { 3: null, 4: 20, 6: 60, 7: null, 8: 80 } }
  expect(windowsOf(intervalsOf(archived(given)))).toEqual([
    { earliest: at(10), latest: at(20) },
    { earliest: at(70), latest: at(80) },
  ])
})

describe('a restore', () => {
  const GIVEN: Given = {
    bases: [ONE, { start: 6, finished: 50 }, { start: 12, finished: 120 }],
    wal: { 3: null, 4: 20, 5: 40, 6: null, 7: 60, 8: 80, 11: 110, 12: null, 13: 140 },
    quiet: { markedAt: 140, until: 200 },
  }
  test.each([
    { name: 'starts from the newest backup before the time', time: 55, first: 6, last: 7, target: 55 },
    { name: 'starts from a backup at its very end', time: 50, first: 6, last: 7, target: 50 },
    { name: 'starts from an older backup right before that', time: 49.999, first: 3, last: 7, target: 49.999 },
    { name: 'ends with the segment of the next mark', time: 20.001, first: 3, last: 5, target: 20.001 },
    { name: 'ends with a mark at the very time', time: 20, first: 3, last: 4, target: 20 },
    { name: 'uses an interval before a gap', time: 75, first: 6, last: 8, target: 75 },
    { name: 'has no plan in a gap', time: 100 },
    { name: 'has no plan between a gap and the next backup', time: 115 },
    { name: 'has no plan before the first backup', time: 9.999 },
    { name: 'stops at the last mark when nothing was committed since', time: 180, first: 12, last: 13, target: 140 },
    { name: 'has no plan after the window', time: 200.001 },
  ])('$name', ({ time, first, last, target }) => {
    const plan = planRestore(intervalsOf(archived(GIVEN)), ZERO + time * 1000)
    const expected = target === undefined ? undefined : { first, last, target: ZERO + target * 1000 }
    expect(plan && { first: plan.first, last: plan.last, target: plan.target }).toEqual(expected)
  })
})
