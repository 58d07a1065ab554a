import { expect, test } from 'vitest'
import { NOTHING, type Process, type Review, reviewPrepared, reviewSessions } from './watchdog.ts'

const bounds = { statementMs: 10_000, idleTransactionMs: 20_000, sizeBytes: 1 }

const SESSION: Process = { id: 1, command: 'Query', time: 0, open: 0, rollingBack: 0, isBarred: false }

/** Reviews one session at several times. `seen`: seconds of the check, and what the list shows. */
function review(seen: readonly (readonly [number, Partial<Process>])[]): Review {
  let last = NOTHING
  for (const [at, shown] of seen) last = reviewSessions([{ ...SESSION, ...shown }], last, bounds, 1000 + at * 1000)
  return last
}

test.each([
  { what: 'leaves a short statement', seen: [[0, { time: 9 }]], cancel: [], end: [] },
  { what: 'cancels a long statement', seen: [[0, { time: 11 }]], cancel: [1], end: [] },
  {
    what: 'ends a session whose statement goes on',
    seen: [
      [0, { time: 11 }],
      [5, { time: 16 }],
    ],
    cancel: [],
    end: [1],
  },
  {
    what: 'ends a session whose next statement is long',
    seen: [
      [0, { time: 11 }],
      [5, { time: 0 }],
      [20, { time: 15 }],
    ],
    cancel: [],
    end: [1],
  },
  {
    what: 'cancels a statement whose session has shifted its clock',
    seen: [
      [0, { time: -9_000 }],
      [6, { time: -8_994 }],
      [11, { time: -8_989 }],
    ],
    cancel: [1],
    end: [],
  },
  {
    what: 'leaves statements that follow each other',
    seen: [
      [0, { time: 0 }],
      [6, { time: 0 }],
      [12, { time: 1 }],
      [18, { time: 0 }],
    ],
    cancel: [],
    end: [],
  },
  { what: 'leaves an idle session', seen: [[0, { command: 'Sleep', time: 900 }]], cancel: [], end: [] },
  {
    what: 'leaves a transaction that is idle shortly',
    seen: [[0, { command: 'Sleep', time: 19, open: 1 }]],
    cancel: [],
    end: [],
  },
  {
    what: 'ends a transaction that is idle for long',
    seen: [[0, { command: 'Sleep', time: 21, open: 1 }]],
    cancel: [],
    end: [1],
  },
  {
    what: 'ends an idle transaction whose session has shifted its clock',
    seen: [
      [0, { command: 'Sleep', time: -500, open: 1 }],
      [21, { command: 'Sleep', time: -479, open: 1 }],
    ],
    cancel: [],
    end: [1],
  },
  {
    what: 'counts a statement and the pause after it separately',
    seen: [
      [0, { time: 8 }],
      [9, { command: 'Sleep', time: 9, open: 1 }],
      [18, { time: 0, open: 1 }],
    ],
    cancel: [],
    end: [],
  },
] as const)('reviewSessions $what', ({ seen, cancel, end }) => {
  const last = review(seen)
  expect({ cancel: last.cancel, end: last.end }).toEqual({ cancel, end })
})

test('reviewSessions forgets sessions that have ended', () => {
  const first = reviewSessions([{ ...SESSION, time: 99 }], NOTHING, bounds, 0)
  const last = reviewSessions([], first, bounds, 1)
  expect([last.watched.size, last.cancelled.size]).toEqual([0, 0])
})

test.each([
  { what: 'an ended session whose statement goes on', shown: {}, checks: [0, 1, 2, 3] },
  {
    what: 'a killed session, within its bound, of a tenant that is being deleted',
    shown: { command: 'Killed', time: 1, isBarred: true },
    checks: [0, 0, 0, 0],
  },
  { what: 'a session that rolls back', shown: { rollingBack: 1 }, checks: [0, 0, 0, 0] },
  { what: 'a statement that its own tenant killed', shown: { command: 'Killed', time: 1 }, checks: [0, 0, 0, 0] },
  {
    what: 'a killed session of a tenant that is being deleted',
    shown: { command: 'Killed', isBarred: true },
    checks: [1, 2, 3, 4],
  },
] as const)('reviewSessions counts the checks of $what', ({ shown, checks }) => {
  const seen = checks.map((_, check) => [check, { time: 11 + check, ...shown }] as const)
  const counts = checks.map((_, check) => review(seen.slice(0, check + 1)).unheeded.get(1) ?? 0)
  expect(counts).toEqual(checks)
})

test.each([
  { what: 'by its own bound', idleTransactionMs: 600_000, forgottenAt: 50 },
  { what: 'by the bound of idle transactions when that is shorter', idleTransactionMs: 20_000, forgottenAt: 25 },
])('a prepared XA transaction is past its bound within 60 s: $what', ({ idleTransactionMs, forgottenAt }) => {
  let prepared: ReadonlyMap<string, number> = new Map()
  const forgotten: number[] = []
  for (let atS = 0; atS <= 60 && forgotten.length === 0; atS += 5) {
    const review = reviewPrepared(['x'], prepared, { idleTransactionMs }, atS * 1000)
    prepared = review.prepared
    if (review.forgotten.length > 0) forgotten.push(atS)
  }
  expect(forgotten).toEqual([forgottenAt])
})

test('the time of a prepared XA transaction starts anew with the next one of its name', () => {
  const first = reviewPrepared(['x'], new Map(), bounds, 0)
  const gone = reviewPrepared([], first.prepared, bounds, 10_000)
  expect(reviewPrepared(['x'], gone.prepared, bounds, 50_000).forgotten).toEqual([])
})
