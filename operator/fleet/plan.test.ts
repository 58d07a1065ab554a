import { expect, test } from 'vitest'
import { databaseServer, readyCondition } from '../../test/builders/resources.ts'
import { IDLE_MS, nextServer, retiresInMs, serverName, usefulForMs } from './plan.ts'

const motor = 'postgresql-15.4.0'

test.each([
  { does: 'creates the first server of a warm motor', warm: true, free: 0, waiting: 0, ordinals: [] as number[], ordinal: 1 },
  {
    does: 'creates no server of a cold motor without waiting instances',
    warm: false,
    free: 0,
    waiting: 0,
    ordinals: [],
    ordinal: undefined,
  },
  {
    does: 'creates a server of a cold motor for the first waiting instance',
    warm: false,
    free: 0,
    waiting: 1,
    ordinals: [],
    ordinal: 1,
  },
  {
    does: 'creates another server when half of the last one is used',
    warm: true,
    free: 24,
    waiting: 0,
    ordinals: [1],
    ordinal: 2,
  },
  {
    does: 'creates no other server before half of the last one is used',
    warm: true,
    free: 25,
    waiting: 0,
    ordinals: [1],
    ordinal: undefined,
  },
  { does: 'waits for the server that is starting', warm: true, free: 50, waiting: 3, ordinals: [1], ordinal: undefined },
  {
    does: 'creates another server when more instances wait than there are slots',
    warm: false,
    free: 2,
    waiting: 3,
    ordinals: [1],
    ordinal: 2,
  },
  { does: 'fills a gap in the ordinals', warm: true, free: 0, waiting: 0, ordinals: [1, 3], ordinal: 2 },
])('$does', ({ warm, free, waiting, ordinals, ordinal }) => {
  expect(nextServer({ motor, warm, headroom: 25, free, waiting, isTaken: (at) => ordinals.includes(at) })).toBe(ordinal)
})

const down = [readyCondition('False', 'Crashed')]
const SINCE = Date.parse('2026-01-02T03:04:06Z')

test.each([
  { does: 'count while it is up', server: databaseServer(), at: SINCE + 99_000, ms: Infinity },
  { does: 'count before its first status', server: databaseServer({ status: {} }), at: SINCE, ms: Infinity },
  {
    does: 'count while it has never been up: another could not start either',
    server: databaseServer({ status: { conditions: down } }),
    at: SINCE + 99_000,
    ms: Infinity,
  },
  {
    does: 'count a while after it went down, for a restart',
    server: databaseServer({ status: { conditions: down, engineVersion: '15.4' } }),
    at: SINCE + 10_000,
    ms: 20_000,
  },
  {
    does: 'do not count when it has not come back',
    server: databaseServer({ status: { conditions: down, engineVersion: '15.4' } }),
    at: SINCE + 30_000,
    ms: 0,
  },
  {
    does: 'do not count while it is being deleted',
    server: databaseServer({ metadata: { deletionTimestamp: '2026-01-02T03:04:06Z' } }),
    at: SINCE,
    ms: 0,
  },
])('free slots of a server $does', ({ server, at, ms }) => {
  expect(usefulForMs(server, at)).toBe(ms)
})

test.each([
  { does: 'stays while it is in use', warm: false, isOwn: true, idleSince: undefined, ms: Infinity },
  { does: 'stays a while for the next instance', warm: false, isOwn: true, idleSince: SINCE - 1_000, ms: IDLE_MS - 1_000 },
  { does: 'is deleted after that', warm: false, isOwn: true, idleSince: SINCE - IDLE_MS - 1, ms: 0 },
  { does: 'stays when its motor is warm', warm: true, isOwn: true, idleSince: SINCE - 2 * IDLE_MS, ms: Infinity },
  { does: 'stays when an administrator created it', warm: false, isOwn: false, idleSince: SINCE - 2 * IDLE_MS, ms: Infinity },
])('a server $does', ({ warm, isOwn, idleSince, ms }) => {
  expect(retiresInMs({ warm, isOwn, idleSince }, SINCE)).toBe(ms)
})

test('a server is named after motor, region and ordinal', () => {
  expect(serverName(motor, 7, 2)).toBe('postgresql-15-4-0-r7-2')
})
