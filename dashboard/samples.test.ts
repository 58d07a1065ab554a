import { expect, test } from 'vitest'
import { sampleColumns, sampleSummary } from './samples.ts'

const at = (minutes: number) => new Date(Date.UTC(2026, 0, 1) + minutes * 60_000).toISOString()
const sample = (minutes: number, connections: number) => ({
  ...{ at: at(minutes), connections, sizeBytes: 1, transactionsPerSecond: null, cacheHitRatio: null, slowStatements: null },
  backupAgeSeconds: null,
})

test('a series has a value for each interval, null for those without a sample', () => {
  const series = [sample(1, 3), sample(59, 5)]
  const [times, values] = sampleColumns({ from: at(0), to: at(60), series }, '1h', 'connections')
  expect(times).toHaveLength(61)
  expect([values[0], values[1], values[59], values[60]]).toEqual([null, 3, 5, null])
  const [, none] = sampleColumns({ from: at(0), to: at(60), series }, '1h', 'cacheHitRatio')
  expect(new Set(none)).toEqual(new Set([null]))
})

test('the summary of a chart has its range and its last value', () => {
  const columns = [
    [1, 2, 3],
    [4, null, 2],
  ] as [number[], (number | null)[]]
  expect(sampleSummary('Connections', columns, String)).toBe('Connections over time: from 2 to 4, now 2.')
  expect(sampleSummary('Connections', [[1], [null]], String)).toBe('Connections over time: no values in this window.')
})
