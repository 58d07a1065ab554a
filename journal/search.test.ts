import { expect, test } from 'vitest'
import { MINUTE_MS, RANGE_ROWS, rangesOf, matchesFilter } from './search.ts'
import { requestRecord } from '../test/conformance/journal/records.ts'
import type { RequestFilter } from './port.ts'

const DAY = 1440
const span = (day: number, from: number, to: number) => ({ day, from: from * MINUTE_MS, to: to * MINUTE_MS })

test.each([
  { does: 'nothing gives no range', minutes: [], all: true, ranges: [] },
  {
    does: 'neighbours are one range',
    minutes: [
      { minute: 12, requests: 1 },
      { minute: 11, requests: 1 },
    ],
    all: false,
    ranges: [span(0, 11, 13)],
  },
  {
    does: 'what lies between two minutes is skipped when it was sorted out',
    minutes: [
      { minute: 12, requests: 1 },
      { minute: 10, requests: 1 },
    ],
    all: false,
    ranges: [span(0, 12, 13), span(0, 10, 11)],
  },
  {
    does: 'and read through when it is empty',
    minutes: [
      { minute: 12, requests: 1 },
      { minute: 10, requests: 1 },
    ],
    all: true,
    ranges: [span(0, 10, 13)],
  },
  {
    does: 'a range never leaves its day',
    minutes: [
      { minute: DAY, requests: 1 },
      { minute: DAY - 1, requests: 1 },
    ],
    all: true,
    ranges: [span(1, DAY, DAY + 1), span(0, DAY - 1, DAY)],
  },
  {
    does: 'a range ends when it is long enough',
    minutes: [
      { minute: 3, requests: RANGE_ROWS - 1 },
      { minute: 2, requests: 1 },
      { minute: 1, requests: 1 },
    ],
    all: true,
    ranges: [span(0, 2, 4), span(0, 1, 2)],
  },
  {
    does: 'a busy minute is cut into pieces, newest first',
    minutes: [{ minute: 1, requests: 2 * RANGE_ROWS }],
    all: true,
    ranges: [span(0, 1.5, 2), span(0, 1, 1.5)],
  },
])('$does', ({ minutes, all, ranges }) => {
  expect(rangesOf(minutes, all)).toEqual(ranges)
})

const record = requestRecord({
  tunnel: 't',
  at: 1_000,
  method: 'POST',
  path: '/api/x',
  status: 502,
  origin: 'edge',
  reason: 'upstream_reset',
})

test.each<{ does: string; by: Omit<RequestFilter, 'tunnel'>; passing: boolean }>([
  { does: 'no filter lets all pass', by: {}, passing: true },
  {
    does: 'all that hold let it pass',
    by: { method: 'POST', status: 502, statusClass: 5, origin: 'edge', pathPrefix: '/api/' },
    passing: true,
  },
  { does: 'another method does not', by: { method: 'post' }, passing: false },
  { does: 'another status does not', by: { status: 500 }, passing: false },
  { does: 'another class does not', by: { statusClass: 4 }, passing: false },
  { does: 'another source does not', by: { sourceIp: '::1' }, passing: false },
  { does: 'another reason does not', by: { reason: 'ip_denied' }, passing: false },
  { does: 'another beginning does not', by: { pathPrefix: 'api' }, passing: false },
  { does: 'its own moment is the first', by: { from: 1_000, to: 1_001 }, passing: true },
  { does: 'its own moment is past the last', by: { to: 1_000 }, passing: false },
])('$does', ({ by, passing }) => {
  expect(matchesFilter(record, { tunnel: 't', ...by })).toBe(passing)
})
