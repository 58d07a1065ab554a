import { expect, test } from 'vitest'
import { chartSummary, columnsOf, type Window } from './series.ts'

const at = (minutes: number) => new Date(Date.UTC(2026, 0, 1) + minutes * 60_000).toISOString()

test.each<[Window, number]>([
  ['1h', 60],
  ['24h', 96],
  ['7d', 168],
])('a series of %s has a bar for each part of it, the empty ones included', (window, count) => {
  const minutes = { '1h': 60, '24h': 1_440, '7d': 10_080 }[window]
  const series = [
    { at: at(0), requests: 3, errors: 1 },
    { at: at(minutes - 1), requests: 4, errors: 0 },
  ]
  const [times, requests, errors] = columnsOf({ from: at(0), to: at(minutes), series }, window)
  expect([times.length, requests.length, errors.length]).toEqual([count, count, count])
  expect([requests[0], requests.at(-1), errors[0]]).toEqual([3, 4, 1])
  expect(requests.reduce((sum, value) => sum + value)).toBe(7)
})

test('a window that begins between two bars loses nothing', () => {
  const series = [
    { at: at(7), requests: 2, errors: 2 },
    { at: at(1_446), requests: 1, errors: 0 },
  ]
  const columns = columnsOf({ from: at(7), to: at(1_447), series }, '24h')
  expect(chartSummary(columns)).toMatch(/^Requests over time: 3 in all, 2 of them with a status of 5xx; the most, 2, from /)
})
