import { expect, test } from 'vitest'
import type { Region } from '../../crds/region.ts'
import { apiToken } from '../../test/builders/resources.ts'
import { apiTokenDecision, regionCounts } from './decisions.ts'

test.each([
  {
    does: 'is accepted until it ends',
    expiresAt: '2026-03-01T00:00:00Z',
    now: '2026-02-28T23:59:59Z',
    end: '2026-03-01T00:00:00.000Z',
  },
  { does: 'expires', expiresAt: '2026-03-01T00:00:00Z', now: '2026-03-01T00:00:00Z', end: '2026-03-01T00:00:00.000Z' },
  {
    does: 'with an expiry in years is accepted for one year',
    expiresAt: '2030-01-01T00:00:00Z',
    now: '2027-01-01T11:59:59Z',
    end: '2027-01-01T12:00:00.000Z',
  },
  {
    does: 'with an expiry in years expires after one year',
    expiresAt: '2030-01-01T00:00:00Z',
    now: '2027-01-01T12:00:00Z',
    end: '2027-01-01T12:00:00.000Z',
  },
])('an API token $does', ({ expiresAt, now, end }) => {
  const isOver = Date.parse(now) >= Date.parse(end)
  expect(apiTokenDecision(apiToken({ spec: { expiresAt } }), Date.parse(now))).toEqual({
    ...(isOver ? { status: 'False', reason: 'Expired' } : { status: 'True', reason: 'Active' }),
    message: isOver ? `it expired at ${end}` : `it is accepted until ${end}`,
  })
})

test('the counts of a region are of its own databases and tunnels', () => {
  const here = { spec: { id: 'a', regionId: 1 } } as Pick<Region, 'spec'>
  const within = (...regions: readonly string[]) => regions.map((region) => ({ spec: { region } }))
  const contents = {
    ...{ instances: within('a', 'b', 'a'), databases: within('b', 'a') },
    tunnels: [1, 1, 1, 2].map((regionId) => ({ spec: { regionId } })),
  }
  expect(regionCounts(here, contents as never)).toEqual({ instances: 2, databases: 1, tunnels: 3 })
})
