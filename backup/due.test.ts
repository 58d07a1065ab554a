import { describe, expect, test } from 'vitest'
import { type BackupInput, dueBackup, isDrillDue, mayRetry, NO_FAILURES } from './due.ts'
import type { Manifest } from './postgresql/catalog/manifest.ts'
import { intervalsOf } from './postgresql/catalog/restorable.ts'
import { createRuns } from './postgresql/catalog/runs.ts'

const ZERO = Date.parse('2026-11-25T10:00:00.000Z')
const HOUR = 3_600_000

function base(startSegment: number, finished: number, timeline = 1): Manifest {
  const id = `20261125T1000${String(startSegment).padStart(2, '0')}Z-0000`
  const time = new Date(ZERO + finished).toISOString()
  return {
    ...{ format: 1, id, kind: 'scheduled', engineVersion: '15.4', systemIdentifier: '7', timeline, dataBytes: 1, databases: [] },
    ...{ startSegment, stopSegment: startSegment, startedAt: time, finishedAt: time },
    parts: [{ key: 'k', sizeBytes: 1, sha256: '0'.repeat(64) }],
  }
}

interface Given {
  readonly bases: readonly Manifest[]
  /** Times of marks by segment. */
  readonly wal: Readonly<Record<number, number>>
  readonly next?: Readonly<Record<number, number>>
  readonly now?: number
  readonly order?: number
}

function inputOf({ bases, wal, next = {}, now = HOUR, order }: Given): BackupInput {
  const runs = createRuns()
  for (const [number, at] of Object.entries(wal)) runs.add('7-1', Number(number), ZERO + at)
  for (const [number, at] of Object.entries(next)) runs.add('7-2', Number(number), ZERO + at)
  return {
    intervals: intervalsOf({ bases, wal: runs.all(), quiet: [] }),
    wal: runs.all(),
    order: order === undefined ? undefined : { retentionDays: 7, backupVersion: order },
    ...{ doneVersion: 2, now: ZERO + now, backupMs: 24 * HOUR },
  }
}

test.each<Given & { readonly name: string; readonly kind: string | undefined }>([
  { name: 'without any backup', bases: [], wal: {}, kind: 'scheduled' },
  { name: 'while the window goes on', bases: [base(3, 10)], wal: { 3: 20, 4: 30 }, kind: undefined },
  { name: 'a day after the last', bases: [base(3, 10)], wal: { 3: 20, 4: 30 }, now: 24 * HOUR + 10, kind: 'scheduled' },
  { name: 'when one was requested', bases: [base(3, 10)], wal: { 3: 20 }, order: 3, kind: 'requested' },
  { name: 'when the requested one was made', bases: [base(3, 10)], wal: { 3: 20 }, order: 2, kind: undefined },
  { name: 'after a gap', bases: [base(3, 10)], wal: { 3: 20, 5: 40 }, kind: 'scheduled' },
  { name: 'after a gap with a backup behind it', bases: [base(3, 10), base(5, 50)], wal: { 3: 20, 5: 60 }, kind: undefined },
  {
    name: 'after a gap with a backup behind it, when the clock was set back',
    bases: [base(3, 10_000), base(5, 50)],
    wal: { 3: 20_000, 5: 60 },
    kind: undefined,
  },
  { name: 'on a new timeline', bases: [base(3, 10)], wal: { 3: 20 }, next: { 4: 40 }, kind: 'scheduled' },
  { name: 'when an older timeline has segments', bases: [base(4, 30, 2)], wal: { 3: 20 }, next: { 4: 40 }, kind: undefined },
])('the backup that is due $name: $kind', ({ kind, ...given }) => {
  expect(dueBackup(inputOf(given))).toBe(kind)
})

describe('a drill', () => {
  const { intervals } = inputOf({ bases: [base(3, 10)], wal: { 3: 20 } })
  test.each([
    { name: 'is due after the first backup', last: null, intervals, now: HOUR, due: true },
    { name: 'is not due without a backup', last: null, intervals: [], now: HOUR, due: false },
    { name: 'is not due before its interval has passed', last: 0, intervals, now: HOUR - 1, due: false },
    { name: 'is due when its interval has passed', last: 0, intervals, now: HOUR, due: true },
  ])('$name', ({ last, intervals, now, due }) => {
    const verified = last === null ? null : new Date(ZERO + last).toISOString()
    expect(isDrillDue(verified, intervals, ZERO + now, HOUR)).toBe(due)
  })
})

test('a job is tried again after a delay that doubles up to an hour', () => {
  const schedule = { retryMs: 30_000 }
  expect(mayRetry(NO_FAILURES, 0, schedule)).toBe(true)
  for (const [count, delay] of [
    [1, 30_000],
    [2, 60_000],
    [20, HOUR],
  ] as const) {
    expect(mayRetry({ count, at: 1_000 }, 1_000 + delay - 1, schedule)).toBe(false)
    expect(mayRetry({ count, at: 1_000 }, 1_000 + delay, schedule)).toBe(true)
  }
})
