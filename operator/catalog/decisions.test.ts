import { expect, test } from 'vitest'
import { apiToken, databaseServer, readyCondition, region } from '../../test/builders/resources.ts'
import { apiTokenDecision, planDecision, regionCounts, regionDecision } from './decisions.ts'

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
  const here = region({ id: 'a', regionId: 1 })
  const within = (...regions: readonly string[]) => regions.map((region) => ({ spec: { region } }))
  const contents = {
    ...{ regions: [here], instances: within('a', 'b', 'a'), databases: within('b', 'a') },
    tunnels: [1, 1, 1, 2].map((regionId) => ({ spec: { regionId } })),
  }
  expect(regionCounts(here, contents as never)).toEqual({ instances: 2, databases: 1, tunnels: 3 })
})

test.each([
  { what: 'id', spec: { id: 'a', regionId: 2 } },
  { what: 'number', spec: { id: 'b', regionId: 1 } },
])('the younger of two regions with one $what is not ready, and what is in the older one does not count for it', ({ spec }) => {
  const older = region({ id: 'a', regionId: 1 })
  const younger = region(spec)
  const regions = [
    { ...younger, metadata: { ...younger.metadata, creationTimestamp: '2100-01-01T00:00:00Z', uid: 'younger' } },
    older,
  ]
  const decided = regions.map((each) => regionDecision(each, regions, []).reason)
  expect(decided).toEqual(['IdTaken', 'Serving'])
  const contents = { instances: [{ spec: { region: 'a' } }], databases: [], tunnels: [{ spec: { regionId: 1 } }] }
  const counts = regions.map((each) => regionCounts(each, { regions, ...contents } as never).instances)
  expect(counts).toEqual([0, 1])
})

const POSTGRESQL = 'postgresql-15.4.0'
const server = (reason: string, message = '', name = 's1') =>
  databaseServer({ metadata: { name }, status: { conditions: [{ ...readyCondition('False', reason), message }] } })
const PULL = 'the image x:1 cannot be pulled: GET https://registry?account=robot'

test.each([
  { servers: [], reason: 'Serving', message: 'it runs 2 motors' },
  { servers: [server('Crashed')], reason: 'Serving', message: 'it runs 2 motors' },
  { servers: [server('MotorUnavailable', PULL), server('Starting', '', 's2')], reason: 'Serving', message: 'it runs 2 motors' },
  {
    servers: [server('MotorUnavailable', PULL)],
    reason: 'MotorUnavailable',
    message: `it runs 1 of 2 motors; it cannot run ${POSTGRESQL}: the image x:1 cannot be pulled`,
  },
])('a region with two motors and these servers of one is $reason: $message', ({ servers, reason, message }) => {
  const here = region({
    motors: [
      { id: POSTGRESQL, warm: true },
      { id: 'mongodb-7.0.2', warm: false },
    ],
  })
  expect(regionDecision(here, [here], servers)).toMatchObject({ reason, message })
  const plan = { spec: { engines: [POSTGRESQL] } } as never
  expect(planDecision(plan, [here], servers).reason).toBe(reason === 'Serving' ? 'Offered' : 'NotOffered')
})
