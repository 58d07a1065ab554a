import { expect, test } from 'vitest'
import { requestRecord } from '../test/conformance/journal/records.ts'
import type { RequestFilter } from './port.ts'
import { matchesFilter } from './matches-filter.ts'

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
