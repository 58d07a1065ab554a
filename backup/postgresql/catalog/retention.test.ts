import fc from 'fast-check'
import { expect, test } from 'vitest'
import { corruptKey, logOf, manifestKey, partKey, walKey } from './keys.ts'
import type { Manifest } from './manifest.ts'
import { intervalsOf, planRestore } from './restorable.ts'
import { expiredKeys } from './retention.ts'
import { createRuns } from './runs.ts'

const SYSTEM = '7000000000000000001'
const DAY = 86_400_000
const NOW = Date.parse('2026-11-25T12:00:00.000Z')

interface Base {
  /** Days before now at which it ended. */
  readonly age: number
  readonly start: number
  readonly timeline?: number
}

const pair = (value: number): string => String(Math.floor(value)).padStart(2, '0')
const idOf = ({ start, timeline = 1 }: Base): string => `20261101T0${timeline}${pair(start / 60)}${pair(start % 60)}Z-0000`

function manifestOf(base: Base): Manifest {
  const { age, start, timeline = 1 } = base
  const time = new Date(NOW - age * DAY).toISOString()
  const id = idOf(base)
  return {
    ...{
      format: 1,
      id,
      kind: 'scheduled',
      engineVersion: '15.4',
      systemIdentifier: SYSTEM,
      timeline,
      dataBytes: 1,
      databases: [],
    },
    ...{ startSegment: start, stopSegment: start, startedAt: time, finishedAt: time },
    parts: [{ key: partKey(id, 1), sizeBytes: 1, sha256: '0'.repeat(64) }],
  }
}

interface Segment {
  readonly number: number
  /** Days before now of its mark. */
  readonly age: number
  readonly timeline?: number
}

const keyOf = ({ number, age, timeline = 1 }: Segment): string =>
  walKey({
    log: logOf({ systemIdentifier: SYSTEM, timeline }),
    segment: { timeline, number },
    sha256: 'a'.repeat(64),
    markedAt: NOW - age * DAY,
  })

interface Given {
  readonly bases: readonly Base[]
  readonly wal: readonly Segment[]
  readonly others?: readonly string[]
  readonly retentionDays: number
}

function expired({ bases, wal, others = [], retentionDays }: Given): readonly string[] {
  const manifests = bases.map(manifestOf)
  return expiredKeys({
    ...{ manifests, now: NOW, retentionDays, intervals: intervalsOf({ bases: manifests, wal: runs(wal), quiet: [] }) },
    keys: [...bases.flatMap((base) => [partKey(idOf(base), 1), manifestKey(idOf(base))]), ...wal.map(keyOf), ...others],
  })
}

function runs(wal: readonly Segment[]) {
  const all = createRuns()
  for (const { number, age, timeline = 1 } of wal) all.add(logOf({ systemIdentifier: SYSTEM, timeline }), number, NOW - age * DAY)
  return all.all()
}

/** One segment a day, the last one of today. */
const daily = (from: number, to = 0): readonly Segment[] =>
  Array.from({ length: from - to + 1 }, (_, n) => ({ number: 100 - (from - n), age: from - n - 0.01 }))

const base = (age: number): Base => ({ age, start: 100 - age })
const ofBackup = (each: Base): readonly string[] => [manifestKey(idOf(each)), partKey(idOf(each), 1)]

test.each([
  { name: 'nothing expires within the retention', bases: [base(3), base(2), base(1)], wal: daily(3), retentionDays: 7, gone: [] },
  { name: 'the backup that has the oldest time stays', bases: [base(9), base(3)], wal: daily(9), retentionDays: 7, gone: [] },
  {
    name: 'a backup expires when the next one has the oldest time, with the WAL before that one',
    bases: [base(9), base(8), base(3)],
    wal: daily(9),
    retentionDays: 7,
    gone: [...ofBackup(base(9)), keyOf({ number: 91, age: 8.99 })],
  },
  { name: 'a single backup stays whatever its age', bases: [base(40)], wal: daily(40), retentionDays: 1, gone: [] },
  {
    name: 'WAL from before the first backup expires',
    bases: [base(2)],
    wal: daily(3),
    retentionDays: 7,
    gone: [keyOf({ number: 97, age: 2.99 })],
  },
  {
    name: 'a window before a gap expires as a whole',
    bases: [base(30), base(2)],
    wal: [...daily(30, 20), ...daily(2)],
    retentionDays: 7,
    gone: [...ofBackup(base(30)), ...daily(30, 20).map(keyOf)],
  },
  {
    name: 'a window before a gap stays within the retention',
    bases: [base(30), base(2)],
    wal: [...daily(30, 6), ...daily(2)],
    retentionDays: 7,
    gone: [],
  },
  {
    name: 'the WAL of a timeline without backups expires',
    bases: [{ age: 2, start: 98, timeline: 2 }],
    wal: [...daily(2), ...daily(2).map((segment) => ({ ...segment, timeline: 2 }))],
    retentionDays: 7,
    gone: daily(2).map(keyOf),
  },
  {
    name: 'a half-made backup expires after an hour, and its note with it',
    bases: [base(1)],
    wal: daily(1),
    others: [
      partKey('20261125T105959Z-0000', 1),
      corruptKey(partKey('20261125T105959Z-0000', 1)),
      partKey('20261125T110001Z-0000', 1),
    ],
    retentionDays: 7,
    gone: [partKey('20261125T105959Z-0000', 1), corruptKey(partKey('20261125T105959Z-0000', 1))],
  },
  {
    name: 'the documents of agent and operator stay',
    bases: [base(1)],
    wal: daily(1),
    others: ['order.json', 'state.json', 'unknown'],
    retentionDays: 1,
    gone: [],
  },
])('$name', ({ gone, ...given }) => {
  expect([...expired(given)].sort()).toEqual([...gone].sort())
})

test('requested backups in quick succession are thinned out, and each time stays restorable', () => {
  // A backup every 12 minutes for two days; segments are numbered like the backups.
  const bases = Array.from({ length: 240 }, (_, n): Base => ({ age: (240 - n) / 120, start: n + 1 }))
  const wal = bases.map(({ age, start }) => ({ number: start, age: age - 0.001 }))
  const given = { bases, wal, retentionDays: 7 }
  const gone = new Set(expired(given))
  const left = bases.filter((one) => !gone.has(manifestKey(idOf(one))))
  expect(left.map(({ start }) => start)).toEqual([1, 101, 201, ...Array.from({ length: 20 }, (_, n) => 221 + n)])
  const [before] = intervalsOf({ bases: bases.map(manifestOf), wal: runs(wal), quiet: [] })
  const leftWal = wal.filter((one) => !gone.has(keyOf(one)))
  const [after] = intervalsOf({ bases: left.map(manifestOf), wal: runs(leftWal), quiet: [] })
  expect([after?.from, after?.to]).toEqual([before?.from, before?.to])
})

test('a manifest goes before the parts of its backup', () => {
  const [first] = expired({ bases: [base(9), base(8)], wal: daily(9), retentionDays: 7 })
  expect(first).toBe(manifestKey(idOf(base(9))))
})

test('whatever is removed, each restorable time of the retention stays restorable', () => {
  const days = fc.integer({ min: 0, max: 40 })
  fc.assert(
    fc.property(
      fc.uniqueArray(days, { maxLength: 8 }),
      fc.uniqueArray(days, { maxLength: 41 }),
      fc.integer({ min: 1, max: 35 }),
      days,
      (ages, gaps, retentionDays, day) => {
        const bases = ages.map(base)
        const wal = daily(40).filter(({ number }) => gaps.length > 20 || !gaps.includes(100 - number))
        const gone = new Set(expired({ bases, wal, retentionDays }))
        const left = bases.filter((one) => !gone.has(manifestKey(idOf(one))))
        const leftWal = wal.filter((one) => !gone.has(keyOf(one)))
        const time = NOW - Math.min(day, retentionDays) * DAY
        const before = planRestore(intervalsOf({ bases: bases.map(manifestOf), wal: runs(wal), quiet: [] }), time)
        const after = planRestore(intervalsOf({ bases: left.map(manifestOf), wal: runs(leftWal), quiet: [] }), time)
        expect(after).toEqual(before)
      },
    ),
  )
})
