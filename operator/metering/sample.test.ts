import { expect, test } from 'vitest'
import { databaseArchive } from '../../test/builders/archive.ts'
import type { Measured } from '../engines/engine.ts'
import { sampleOf } from './sample.ts'

const measured = (about: Partial<Measured> = {}): Measured => ({
  ...{ connections: 3, sizeBytes: 5_000, transactions: 1_000, pages: { reads: 2_000, misses: 100 }, slow: { total: 4 } },
  ...about,
})
const first = { at: 10_000, measured: measured() }
const later = (about: Partial<Measured>, at = 40_000) => ({ at, measured: measured(about) })
const unknown = { transactionsPerSecond: null, cacheHitRatio: null, slowStatements: null }

test('a first measurement has no rates', () => {
  const sample = { at: 10_000, connections: 3, sizeBytes: 5_000, backupAgeSeconds: null, ...unknown }
  expect(sampleOf(first, undefined)).toEqual(sample)
})

test.each([
  {
    does: 'has the rates since the first one',
    now: later({ transactions: 1_300, pages: { reads: 3_000, misses: 350 }, slow: { total: 6 } }),
    sample: { transactionsPerSecond: 10, cacheHitRatio: 0.75, slowStatements: 2 },
  },
  {
    does: 'has no hit ratio without page reads',
    now: later({}),
    sample: { transactionsPerSecond: 0, cacheHitRatio: null, slowStatements: 0 },
  },
  {
    does: 'has no rates after a restart of the server',
    now: later({ transactions: 7, pages: { reads: 2, misses: 2 }, slow: { total: 0 } }),
    sample: unknown,
  },
  { does: 'has no rates within 500 ms of the first one', now: later({ transactions: 1_300 }, 10_100), sample: unknown },
  {
    does: 'has the number of running slow statements where the engine does not count them',
    now: later({ slow: { running: 2 } }),
    sample: { slowStatements: 2 },
  },
])('a later measurement $does', ({ now, sample }) => {
  expect(sampleOf(now, first)).toMatchObject(sample)
})

const backup = (status: 'running' | 'succeeded' | 'failed', finishedAt?: string) => ({
  ...{ id: 'a', startedAt: '2026-01-02T00:00:00Z', sizeBytes: 1, kind: 'scheduled' as const, status },
  ...(finishedAt !== undefined && { finishedAt }),
})

test.each([
  {
    does: 'the time since the last backup that succeeded',
    backups: [
      backup('running'),
      backup('failed', '2026-01-02T00:02:00Z'),
      backup('succeeded', '2026-01-02T00:01:00Z'),
      backup('succeeded', '2026-01-01T00:01:00Z'),
    ],
    age: 120,
  },
  { does: '0 when the clock of the backup is ahead', backups: [backup('succeeded', '2026-01-02T00:04:00Z')], age: 0 },
  { does: 'null before the first backup', backups: [backup('running')], age: null },
])('the age of the backup is $does', ({ backups, age }) => {
  const archive = databaseArchive('3f1c3a52-5d3c-4a77-9a31-0f5f0c3f8f10', { status: { backups } })
  const at = Date.parse('2026-01-02T00:03:00Z')
  expect(sampleOf({ ...first, at, archive }, undefined).backupAgeSeconds).toBe(age)
})
